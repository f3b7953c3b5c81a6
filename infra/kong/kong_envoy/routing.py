"""Writes Envoy's routes: Kong's order of precedence, its time-outs and its retries."""

from typing import Any

from kong_envoy.document import Gateway
from kong_envoy.services import EXACT_PATH, Route

SCRIPT = "envoy.filters.http.lua"
NOT_REPEATED = "POST|LOCK|PATCH"
"""The methods that nginx, and so Kong, does not send again once they may have arrived."""
CHOICES = 200
"""How often Envoy chooses for a call that it sends again before it takes a target that has failed it, which Kong never
does. Of two targets, where the dead one has the fewest connections, a choice finds the other one time in sixteen."""


def routes_of(gateway: Gateway) -> list[dict[str, Any]]:
    """The routes, the first match wins: those that also match the method, then exact paths, then longer prefixes."""
    ranked = sorted(
        ((bool(route.methods), _rank(path), path, route) for route in gateway.routes for path in route.paths),
        key=lambda each: each[:3],
        reverse=True,
    )
    return [entry for _, _, path, route in ranked for entry in _entries(path, route)]


def _rank(path: str) -> tuple[bool, int]:
    return EXACT_PATH.fullmatch(path) is not None, len(path)


def _path_match(path: str) -> dict[str, str]:
    exact = EXACT_PATH.fullmatch(path)
    return {"prefix": path} if exact is None else {"path": exact[1].replace("\\.", ".")}


def _entries(path: str, route: Route) -> list[dict[str, Any]]:
    methods = [_method("|".join(route.methods))] if route.methods else []
    return [
        _entry(path, route, [*methods, _method(NOT_REPEATED)], "connect-failure"),
        _entry(path, route, methods, "connect-failure,reset"),
    ]


def _method(pattern: str) -> dict[str, Any]:
    return {"name": ":method", "string_match": {"safe_regex": {"regex": pattern}}}


def _entry(path: str, route: Route, headers: list[dict[str, Any]], retry_on: str) -> dict[str, Any]:
    action: dict[str, Any] = {
        "cluster": cluster_name(route),
        "timeout": "0s",
        "idle_timeout": f"{route.service.idle_timeout / 1000:g}s",
        "auto_host_rewrite": True,
    }
    if route.service.retries:
        action["retry_policy"] = _retry_policy(route.service.retries, retry_on)
    return {
        "match": {**_path_match(path), **({"headers": headers} if headers else {})},
        "route": action,
        "metadata": {"filter_metadata": {SCRIPT: {"route": route.name}}},
    }


def cluster_name(route: Route) -> str:
    """The cluster of a route's upstream; Envoy keeps the connect time-out there, so it is part of the name."""
    return f"{route.service.upstream} {route.service.connect_timeout}ms"


def _retry_policy(retries: int, retry_on: str) -> dict[str, Any]:
    predicate = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
    return {
        "retry_on": retry_on,
        "num_retries": retries,
        "retry_host_predicate": [
            {"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": {"@type": predicate}}
        ],
        "host_selection_retry_max_attempts": CHOICES,
    }
