"""From which sites browsers may open sockets. A browser sends the site's origin; other clients send none."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from ws_edge.errors import OriginRefusedError

ANY = "*"


class Origins:
    """Keeps sites of strangers from opening sockets with what a browser knows of its user."""

    def __init__(self, allowed: Collection[str]) -> None:
        """`allowed` are origins in lower case, or `*`; without any, it is the host that the client has asked for."""
        self._allowed = frozenset(allowed)

    def check(self, scope: Mapping[str, Any]) -> None:
        """Raises OriginRefusedError when a browser opens the socket from a site that is not allowed."""
        origins = _values(scope, b"origin")
        for origin in origins:
            if not self._allows(origin.lower(), scope):
                text = f"sockets are not opened from {origin[:200]}: the operator may allow it by WS_EDGE_ORIGINS"
                raise OriginRefusedError(text)

    def _allows(self, origin: str, scope: Mapping[str, Any]) -> bool:
        if self._allowed:
            return origin in self._allowed or ANY in self._allowed
        asked_for = _values(scope, b"x-forwarded-host") or _values(scope, b"host")
        host = _host(origin)
        return bool(host) and [host] == [_host(f"//{value}") for value in asked_for]


def _values(scope: Mapping[str, Any], name: bytes) -> list[str]:
    return [value.decode("latin-1") for known, value in scope["headers"] if known == name]


def _host(url: str) -> str:
    """The host alone: the gateway does not say which port it is reached by. Empty when there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
