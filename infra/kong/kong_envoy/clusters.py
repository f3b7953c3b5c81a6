"""Writes Envoy's clusters: the targets of an upstream at the addresses where they are found, and their checks."""

from collections.abc import Mapping
from typing import Any

from kong_envoy.addresses import socket_address
from kong_envoy.buffers import from_upstreams
from kong_envoy.document import Gateway
from kong_envoy.routing import cluster_name
from kong_envoy.upstreams import HealthCheck, Upstream

POLICIES: dict[str, dict[str, Any]] = {
    "round-robin": {"kind": "round_robin.v3.RoundRobin"},
    # Of four that chance picks, and not of all as Kong does: a scan of all would come to a target that has just died,
    # and so has the fewest, as often as a call is sent again.
    "least-connections": {"kind": "least_request.v3.LeastRequest", "choice_count": 4},
}
NO_LIMIT = 1_000_000
"""Kong has no limit of its own; Envoy's default would refuse the 1,025th socket."""


def clusters_of(gateway: Gateway, resolve: Mapping[str, str]) -> list[dict[str, Any]]:
    """One cluster per upstream and connect time-out. Targets that `resolve` does not name are resolved by DNS."""
    wanted = {cluster_name(route): route.service for route in gateway.routes}
    return [
        _cluster(name, service.connect_timeout, gateway.upstreams[service.upstream], resolve)
        for name, service in sorted(wanted.items())
    ]


def _cluster(name: str, connect_timeout: int, upstream: Upstream, resolve: Mapping[str, str]) -> dict[str, Any]:
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), NO_LIMIT)
    return {
        "name": name,
        "type": "STRICT_DNS",
        "connect_timeout": f"{connect_timeout / 1000:g}s",
        **from_upstreams(),
        "load_balancing_policy": _policy(**POLICIES[upstream.algorithm]),
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "circuit_breakers": {"thresholds": [limits]},
        "health_checks": [_health_check(upstream.check)],
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [_endpoint(*each, resolve) for each in upstream.targets.items()]}],
        },
    }


def _policy(kind: str, **settings: int) -> dict[str, Any]:
    config = {"@type": f"type.googleapis.com/envoy.extensions.load_balancing_policies.{kind}", **settings}
    return {"policies": [{"typed_extension_config": {"name": kind, "typed_config": config}}]}


def _endpoint(target: str, weight: int, resolve: Mapping[str, str]) -> dict[str, Any]:
    return {
        "endpoint": {"address": socket_address(resolve.get(target, target)), "hostname": target},
        "load_balancing_weight": weight,
    }


def _health_check(check: HealthCheck) -> dict[str, Any]:
    return {
        "timeout": f"{check.timeout}s",
        "interval": f"{check.healthy_interval}s",
        "no_traffic_interval": f"{check.healthy_interval}s",
        "unhealthy_interval": f"{check.unhealthy_interval}s",
        "healthy_threshold": check.successes,
        "unhealthy_threshold": check.failures,
        "http_health_check": {
            "path": check.path,
            "expected_statuses": [{"start": 200, "end": 201}],
            # Without this, one bad answer would count as many.
            "retriable_statuses": [{"start": 100, "end": 200}, {"start": 201, "end": 600}],
        },
    }
