"""Decides whether a handshake is accepted: origin, quotas, free capacity, and the pace of new sockets."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import QuotaReservation, Quotas, TokenBucket
from ws_edge.errors import BusyError, OriginRefusedError

ANY_ORIGIN = "*"

INITIAL_SHARE = 0.1
"""The share of the full pace at which an edge starts."""


@dataclass
class Pace:
    """A token bucket of one second's tokens; its rate rises evenly to the full one. Times are monotonic seconds.

    When everybody reconnects to an edge that has just started, each new socket brings first reads. They are batched and
    shared, but ten thousand at once would be one big wave for the query service: the pace spreads them.
    """

    per_second: float
    warm_up: float
    """The full pace is reached so many seconds after the first socket."""
    clock: Callable[[], float]
    _started_at: float | None = field(default=None, init=False)
    _bucket: TokenBucket = field(init=False)

    def admits(self) -> bool:
        """Whether one more socket may be opened now; if so, it is counted."""
        now = self.clock()
        age = 0.0 if self._started_at is None else now - self._started_at
        share = 1.0 if age >= self.warm_up else INITIAL_SHARE + (1 - INITIAL_SHARE) * age / self.warm_up
        rate = self.per_second * share
        burst = max(rate, 1.0)
        if self._started_at is None:
            self._started_at, self._bucket = now, TokenBucket(rate, burst, now)
        self._bucket.rate, self._bucket.burst = rate, burst
        return self._bucket.take(now)


def departures(count: int, per_second: float, longest_s: float) -> list[float]:
    """Returns when each of `count` sockets is to leave, in seconds after the first.

    They leave as fast as another edge opens sockets, and within `longest_s`.
    """
    span = min(longest_s, count / per_second)
    return [span * index / count for index in range(count)]


@dataclass(frozen=True)
class Admission:
    """Admits sockets as origins, quotas, capacity and pace allow."""

    origins: Collection[str]
    """What `check_origin` allows."""
    quotas: Quotas
    pace: Pace
    max_sockets: int

    def admit(self, scope: Mapping[str, Any], caller: Caller) -> QuotaReservation:
        """Returns the socket's reservation, which counts while it is entered. Raises HandshakeError."""
        check_origin(self.origins, scope)
        reservation = self.quotas.reserve(caller)
        if self.quotas.sockets >= self.max_sockets:
            raise BusyError("this edge has as many sockets as it may have: connect again later", "full")
        # Last, so that sockets that are refused anyway take no tokens.
        if not self.pace.admits():
            raise BusyError("more sockets are being opened than this edge takes at a time: connect again later", "pace")
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
    """The host without its port, which the gateway does not forward; empty when there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
