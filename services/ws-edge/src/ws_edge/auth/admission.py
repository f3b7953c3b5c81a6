"""Decides whether a handshake is accepted: origin, quotas and free capacity."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import QuotaReservation, Quotas
from ws_edge.errors import BusyError, OriginRefusedError

ANY_ORIGIN = "*"


@dataclass(frozen=True)
class Admission:
    """Admits sockets as origins, quotas and capacity allow."""

    origins: Collection[str]
    """The origins that `check_origin` allows."""
    quotas: Quotas
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
