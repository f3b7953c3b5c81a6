"""Writes what leads to the upstreams: Envoy's clusters with their checks, and its routes with time-outs and retries."""

import socket
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from typing import Any

import yaml

from kong_envoy.errors import AddressError
from kong_envoy.models import EXACT_PATH, HealthChecks, KongFile, Route, Service, Target, Upstream

SCRIPT = "envoy.filters.http.lua"
BUFFER_BYTES = 64 * 1024
"""What each buffer on the way to a client holds, as a target; the kernel counts its own overhead beside it. What a
stalled client will never read must wait at the edge, which keeps the newest value of a key only."""
NOT_REPEATED = "POST|LOCK|PATCH"
"""The methods that nginx, and so Kong, does not send again once they may have arrived."""


@cache
def fixed_parts() -> Any:
    """The parts of the configuration that envoy.yaml has, by name. They are shared: copy what is to be changed."""
    return yaml.safe_load(files("kong_envoy").joinpath("envoy.yaml").read_text(encoding="utf-8"))


def socket_address(address: str, *, loopback: bool = False) -> dict[str, Any]:
    """`host:port` in Envoy's form. Raises AddressError for another form, or for `loopback` if others could reach it."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise AddressError(f"{address!r} must have the form host:port")
    if loopback and not _is_loopback(host):
        raise AddressError(f"{address!r} is not of this machine: the rendered gateway listens on 127.0.0.1 only")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def kernel_buffer(name: str) -> dict[str, Any]:
    """A socket option. Left alone, the kernel lets a buffer grow to megabytes. Windows are scaled by the handshake."""
    option = {"level": socket.SOL_SOCKET, "name": getattr(socket, name), "int_value": BUFFER_BYTES}
    return {"description": name, **option, "state": "STATE_PREBIND"}


def clusters_of(gateway: KongFile, resolve: Mapping[str, str]) -> list[dict[str, Any]]:
    """One cluster per upstream and connect time-out. Targets that `resolve` does not name are resolved by DNS."""
    for address in (*resolve, *resolve.values()):
        socket_address(address)  # also of targets that the file does not have
    upstreams = {upstream.name: upstream for upstream in gateway.upstreams}
    services = {_cluster_name(service): service for service in gateway.services if service.routes}
    return [
        _cluster(name, service.connect_timeout, upstreams[service.host], resolve)
        for name, service in sorted(services.items())
    ]


def _cluster_name(service: Service) -> str:
    """Envoy keeps the connect time-out with the cluster, so it is part of the name."""
    return f"{service.host} {service.connect_timeout}ms"


def _cluster(name: str, connect_timeout: int, upstream: Upstream, resolve: Mapping[str, str]) -> dict[str, Any]:
    endpoints = [{"lb_endpoints": [_endpoint(target, resolve) for target in upstream.targets]}]
    return {
        "name": name,
        **fixed_parts()["cluster"],
        "connect_timeout": f"{connect_timeout / 1000:g}s",
        "upstream_bind_config": {"socket_options": [kernel_buffer("SO_RCVBUF")]},
        "load_balancing_policy": {
            "policies": [{"typed_extension_config": fixed_parts()["policies"][upstream.algorithm]}]
        },
        "health_checks": [_health_check(upstream.healthchecks)],
        "load_assignment": {"cluster_name": name, "endpoints": endpoints},
    }


def _endpoint(target: Target, resolve: Mapping[str, str]) -> dict[str, Any]:
    address = socket_address(resolve.get(target.target, target.target))
    return {"endpoint": {"address": address, "hostname": target.target}, "load_balancing_weight": target.weight}


def _health_check(checks: HealthChecks) -> dict[str, Any]:
    active = checks["active"]
    return {
        "timeout": f"{active.timeout}s",
        "interval": f"{active.healthy['interval']}s",
        "no_traffic_interval": f"{active.healthy['interval']}s",
        "unhealthy_interval": f"{active.unhealthy.interval}s",
        "healthy_threshold": active.healthy["successes"],
        "unhealthy_threshold": active.unhealthy.http_failures,
        "http_health_check": {"path": active.http_path, **fixed_parts()["http_health_check"]},
    }


def routes_of(gateway: KongFile) -> list[dict[str, Any]]:
    """The routes, the first match wins: those that also match the method, then exact paths, then longer prefixes."""
    ranked = sorted(
        (
            (bool(route.methods), EXACT_PATH.fullmatch(path) is not None, len(path), path, service, route)
            for service in gateway.services
            for route in service.routes
            for path in route.paths
        ),
        key=lambda ranks: ranks[:4],
        reverse=True,
    )
    return [entry for *_, path, service, route in ranked for entry in _entries(path, service, route)]


def _entries(path: str, service: Service, route: Route) -> list[dict[str, Any]]:
    methods = [_method("|".join(route.methods))] if route.methods else []
    return [
        _entry(path, service, route, [*methods, _method(NOT_REPEATED)], "connect-failure"),
        _entry(path, service, route, methods, "connect-failure,reset"),
    ]


def _method(pattern: str) -> dict[str, Any]:
    return {"name": ":method", "string_match": {"safe_regex": {"regex": pattern}}}


def _entry(path: str, service: Service, route: Route, headers: list[dict[str, Any]], retry_on: str) -> dict[str, Any]:
    exact = EXACT_PATH.fullmatch(path)
    match: dict[str, Any] = {"prefix": path} if exact is None else {"path": exact[1].replace("\\.", ".")}
    if headers:
        match["headers"] = headers
    idle_timeout = f"{service.read_timeout / 1000:g}s"
    action = {"cluster": _cluster_name(service), "idle_timeout": idle_timeout, **fixed_parts()["route"]}
    if service.retries:
        action["retry_policy"] = {"retry_on": retry_on, "num_retries": service.retries, **fixed_parts()["retry_policy"]}
    return {"match": match, "route": action, "metadata": {"filter_metadata": {SCRIPT: {"route": route.name}}}}
