"""Reads where requests go: upstreams with their targets and active health checks."""

from dataclasses import dataclass
from typing import Any

from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, entries, nested, only, optional, required, text, texts, whole

UPSTREAM: Table = {
    "name": required(text),
    "algorithm": optional(only("round-robin", "least-connections"), "round-robin"),
    "targets": required(nested),
    "healthchecks": required(nested),
    "tags": optional(texts),
}
TARGET: Table = {"target": required(text), "weight": optional(whole(1, 65535), 100), "tags": optional(texts)}
HEALTHCHECKS: Table = {"active": required(nested), "threshold": optional(only(0), 0)}
ACTIVE: Table = {
    "type": optional(only("http"), "http"),
    "http_path": required(text),
    "timeout": optional(whole(1, 65535), 1),
    "concurrency": optional(whole(1), 10),  # how many targets Kong checks at once
    "healthy": required(nested),
    "unhealthy": required(nested),
}
HEALTHY: Table = {
    "interval": required(whole(1, 65535)),
    "successes": required(whole(1, 255)),
    "http_statuses": required(only([200])),
}
UNHEALTHY: Table = {
    "interval": required(whole(1, 65535)),
    "http_failures": required(whole(1, 255)),
    "tcp_failures": required(whole(1, 255)),
    "timeouts": required(whole(1, 255)),
    "http_statuses": required(only([429, 404, 500, 501, 502, 503, 504, 505])),
}


@dataclass(frozen=True)
class HealthCheck:
    """How the targets are checked. Intervals and timeout are seconds; the rest counts checks in a row."""

    path: str
    timeout: int
    healthy_interval: int
    unhealthy_interval: int
    successes: int
    failures: int


@dataclass(frozen=True)
class Upstream:
    """The targets that answer for each other: `host:port` and weight."""

    name: str
    algorithm: str
    targets: dict[str, int]
    check: HealthCheck


def read_upstreams(where: str, given: object) -> dict[str, Upstream]:
    """The upstreams by name. Raises UnsupportedError for what is not carried over."""
    read = [_upstream(place, check(place, entry, UPSTREAM)) for place, entry in entries(where, given)]
    return {upstream.name: upstream for upstream in read}


def _upstream(where: str, values: dict[str, Any]) -> Upstream:
    targets = [check(place, each, TARGET) for place, each in entries(f"{where}.targets", values["targets"])]
    for target in targets:
        if ":" not in target["target"]:
            raise UnsupportedError(f"{where}.targets", f"must name host:port, not {target['target']!r}")
    return Upstream(
        values["name"],
        values["algorithm"],
        {each["target"]: each["weight"] for each in targets},
        _health_check(f"{where}.healthchecks", values["healthchecks"]),
    )


def _health_check(where: str, given: object) -> HealthCheck:
    active = check(f"{where}.active", check(where, given, HEALTHCHECKS)["active"], ACTIVE)
    healthy = check(f"{where}.active.healthy", active["healthy"], HEALTHY)
    unhealthy = check(f"{where}.active.unhealthy", active["unhealthy"], UNHEALTHY)
    failures = {unhealthy[each] for each in ("http_failures", "tcp_failures", "timeouts")}
    if len(failures) > 1:
        raise UnsupportedError(f"{where}.active.unhealthy", "the three counts of failures must be equal")
    return HealthCheck(
        active["http_path"],
        active["timeout"],
        healthy["interval"],
        unhealthy["interval"],
        healthy["successes"],
        failures.pop(),
    )
