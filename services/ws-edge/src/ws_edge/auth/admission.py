"""Decides whether a handshake is accepted: origin, quotas, free capacity, and the pace of new sockets."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import QuotaReservation, Quotas, TokenBucket
from ws_edge.errors import BusyError, OriginRefusedError

ANY_ORIGIN = "*"

BURST_S = 0.1
"""So many seconds' worth of sockets may be opened at once."""

MAX_WAIT_S = 5.0
"""How long a handshake is held until it may open its socket; clients wait for ten seconds."""


@dataclass
class Pace:
    """Opens sockets one after the other, `per_second` of them. Times are monotonic seconds.

    When everybody reconnects, each new socket brings first reads. They are batched and shared, but ten thousand at once
    would be one big wave for the query service, and leave other clients waiting: the pace spreads them. Handshakes are
    held in line, because one that is refused comes back, and costs as much again.
    """

    per_second: float
    clock: Callable[[], float]
    _bucket: TokenBucket = field(init=False)

    def __post_init__(self) -> None:
        self._bucket = TokenBucket(self.per_second, max(self.per_second * BURST_S, 1.0), self.clock())

    def wait_s(self) -> float:
        """Returns after how many seconds one more socket may be opened, behind those that wait, and counts it.

        Raises BusyError, and counts nothing, when that is later than MAX_WAIT_S.
        """
        now = self.clock()
        wait_s = self._bucket.pay(1, now)
        if wait_s > MAX_WAIT_S:
            self._bucket.pay(-1, now)
            raise BusyError("too many sockets are being opened at this edge: connect again later", "pace")
        return wait_s


def departures(count: int, per_second: float, longest_s: float) -> list[float]:
    """Returns when each of `count` sockets is to leave, in seconds after the first.

    They leave as fast as another edge opens sockets, and within `longest_s`.
    """
    span = min(longest_s, count / per_second)
    return [span * index / count for index in range(count)]


@dataclass(frozen=True)
class Admission:
    """Admits sockets as origins, quotas and capacity allow, and then at a pace."""

    origins: Collection[str]
    """The origins that `check_origin` allows."""
    quotas: Quotas
    pace: Pace
    max_sockets: int

    def admit(self, scope: Mapping[str, Any], caller: Caller) -> QuotaReservation:
        """Returns the socket's reservation, which counts while it is entered. Raises HandshakeError."""
        check_origin(self.origins, scope)
        reservation = self.quotas.reserve(caller)
        if self.quotas.sockets >= self.max_sockets:
            raise BusyError("this edge has reached its limit of sockets: connect again later", "full")
        return reservation


def check_origin(allowed: Collection[str], scope: Mapping[str, Any]) -> None:
    """Stops other sites from opening sockets with a user's credentials. Only browsers send an origin.

    `allowed` are origins in lower case, or `*`; if empty, only the host that the client asked for is allowed. Raises
    OriginRefusedError when the ASGI scope has another origin.
    """
    for origin in _values(scope, b"origin"):
        if not _is_allowed(origin.lower(), allowed, scope):
            text = f"sockets are not opened from {origin[:200]}: the operator may allow it by WS_EDGE_ORIGINS"
            raise OriginRefusedError(text)


def _is_allowed(origin: str, allowed: Collection[str], scope: Mapping[str, Any]) -> bool:
    if allowed:
        return origin in allowed or ANY_ORIGIN in allowed
    requested = _values(scope, b"x-forwarded-host") or _values(scope, b"host")
    host = _host(origin)
    return bool(host) and [host] == [_host(f"//{value}") for value in requested]


def _values(scope: Mapping[str, Any], name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


def _host(url: str) -> str:
    """Returns the host without its port, which the gateway does not forward; empty when there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
