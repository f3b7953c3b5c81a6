"""Why sockets are closed, in the words by which the metric counts them."""

from collections.abc import Mapping
from typing import Any

from ws_edge.errors import (
    CLOSE_CHANNEL_ENDED,
    CLOSE_EXPIRED,
    CLOSE_FLOOD,
    CLOSE_RESTART,
    CLOSE_REVOKED,
    CLOSE_SLOW,
)

BY_PROTOCOL = "ws_edge.by_protocol"
"""Marks an ASGI `websocket.disconnect` event whose code the protocol has chosen, not the peer."""

LOST = 1006
"""The code of a connection that went away without a close frame; it is never sent."""

NO_PONG = 1011
"""The peer has not answered a ping."""

BY_EDGE: Mapping[int, str] = {
    1009: "too_large",
    NO_PONG: "no_pong",
    CLOSE_RESTART: "restart",
    CLOSE_EXPIRED: "expired",
    CLOSE_REVOKED: "revoked",
    CLOSE_CHANNEL_ENDED: "channel_ended",
    CLOSE_SLOW: "slow",
    CLOSE_FLOOD: "flood",
}
"""What this side has closed a socket for, by its close code."""

REASONS = ("client", "lost", "stalled", "protocol", *BY_EDGE.values())
"""All reasons: besides those of BY_EDGE the client closed it, it was lost, its client did not read, or broke the
protocol."""


def reason_of(stalled: bool, end_code: int | None, code: int) -> str:
    """The reason, of REASONS. `end_code` is the code that this side has closed with; `code` the one that was seen."""
    if stalled:
        return "stalled"
    if end_code is not None:
        return BY_EDGE.get(end_code, "protocol")
    return "lost" if code == LOST else "client"


def by_protocol(code: int, reason: str) -> Any:
    """The ASGI event that the protocol has closed the socket."""
    return {"type": "websocket.disconnect", "code": code, "reason": reason, BY_PROTOCOL: True}
