"""Writes Envoy's listeners, on this machine only: plain HTTP, TLS, and the filters that both share."""

from typing import Any

from kong_envoy.addresses import loopback_address
from kong_envoy.buffers import towards_clients
from kong_envoy.certificates import Certificate
from kong_envoy.document import Gateway
from kong_envoy.jwt_filter import jwt_filter
from kong_envoy.plugins_of_access import MOST_BUFFERED
from kong_envoy.replies import local_replies
from kong_envoy.routing import SCRIPT, routes_of
from kong_envoy.script import script_of

EXTENSIONS = "type.googleapis.com/envoy.extensions"
ACCESS_LOG = (
    '{"time":"%START_TIME%","method":"%REQ(:METHOD)%","path":"%PATH(NQ)%","status":%RESPONSE_CODE%,'
    '"flags":"%RESPONSE_FLAGS%","ms":%DURATION%,"upstream":"%UPSTREAM_HOST%",'
    '"request_id":"%DYNAMIC_METADATA(kong:request_id)%"}\n'
)
"""One JSON object a request, without its query: that may hold a credential."""


def listener(name: str, address: str, gateway: Gateway, certificate: Certificate | None) -> dict[str, Any]:
    """A listener; with a certificate, of TLS. Raises AddressError when others than this machine could reach it."""
    chain: dict[str, Any] = {"filters": [_connection_manager(name, gateway)]}
    if certificate:
        chain["transport_socket"] = _tls(certificate)
    return {
        "name": name,
        "address": loopback_address(address),
        **towards_clients(),
        "filter_chains": [chain],
    }


def _connection_manager(name: str, gateway: Gateway) -> dict[str, Any]:
    hosts = [
        {
            "name": "kong",
            "domains": ["*"],
            "routes": routes_of(gateway),
            # Beyond the listener's own limit: the script measures bodies whose length was not announced.
            "request_body_buffer_limit": MOST_BUFFERED,
        }
    ]
    config = {
        "@type": f"{EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "route_config": {"name": "kong", "virtual_hosts": hosts},
        "http_filters": _filters(gateway),
        "local_reply_config": local_replies(),
        "access_log": [_access_log()],
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "proxy_100_continue": True,  # so that the script may refuse a body before it is sent
        "use_remote_address": True,
        "skip_xff_append": True,  # the script appends, as Envoy would not name a client of this machine
        "generate_request_id": False,
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "KEEP_UNCHANGED",
        "server_header_transformation": "PASS_THROUGH",
        "stream_idle_timeout": "0s",
        "request_headers_timeout": "60s",
        "drain_timeout": "5s",
        # Each close would otherwise wait a second for the client to close first.
        "delayed_close_timeout": "0.05s",
    }
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": config}


def _filters(gateway: Gateway) -> list[dict[str, Any]]:
    script = {
        "@type": f"{EXTENSIONS}.filters.http.lua.v3.Lua",
        "default_source_code": {"inline_string": script_of(gateway)},
    }
    router = {"@type": f"{EXTENSIONS}.filters.http.router.v3.Router", "suppress_envoy_headers": True}
    tokens = jwt_filter(gateway)
    return [
        *([tokens] if tokens else []),
        {"name": SCRIPT, "typed_config": script},
        {"name": "envoy.filters.http.router", "typed_config": router},
    ]


def _access_log() -> dict[str, Any]:
    config = {
        "@type": f"{EXTENSIONS}.access_loggers.stream.v3.StdoutAccessLog",
        "log_format": {"text_format_source": {"inline_string": ACCESS_LOG}},
    }
    return {"name": "envoy.access_loggers.stdout", "typed_config": config}


def _tls(certificate: Certificate) -> dict[str, Any]:
    shown = {
        "certificate_chain": {"inline_string": certificate.chain},
        "private_key": {"inline_string": certificate.key},
    }
    config = {
        "@type": f"{EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificates": [shown], "alpn_protocols": ["h2", "http/1.1"]},
    }
    return {"name": "envoy.transport_sockets.tls", "typed_config": config}
