"""Why sockets are closed: close codes, and the reasons by which the metric counts them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ws_edge.errors import CLOSE_CHANNEL_ENDED, CLOSE_EXPIRED, CLOSE_FLOOD, CLOSE_RESTART, CLOSE_REVOKED, CLOSE_SLOW

BY_PROTOCOL = "ws_edge.by_protocol"
"""Marks an ASGI `websocket.disconnect` event whose code was chosen by the protocol, not by the peer."""

LOST = 1006
"""The connection ended without a close frame; the code is never sent."""

NO_PONG = 1011


class Close(NamedTuple):
    """A way in which a socket ends."""

    reason: str
    """The label of the metric."""
    meaning: str


BY_EDGE: Mapping[int, Close] = {
    1009: Close("too_large", "A frame is larger than `WS_EDGE_MAX_FRAME_BYTES`."),
    NO_PONG: Close("no_pong", "The client does not answer pings."),
    CLOSE_RESTART: Close("restart", "The edge restarts: connect again, with your positions."),
    CLOSE_EXPIRED: Close("expired", "The credential has expired and was not renewed: sign in again, then connect."),
    CLOSE_REVOKED: Close("revoked", "The operators have ended the consumer's access."),
    CLOSE_CHANNEL_ENDED: Close("channel_ended", "The channel has expired or was deleted: create another one."),
    CLOSE_SLOW: Close("slow", "More than `WS_EDGE_MAX_OUTBOX_BYTES` wait for the client."),
    CLOSE_FLOOD: Close("flood", "The client goes on sending far more frames than it may."),
}
"""What the edge closes sockets for, by close code."""

OTHERS = (
    Close("client", "The client has closed the socket."),
    Close("lost", "The connection ended without a close frame."),
    Close("stalled", "Reset: the client has read nothing for `WS_EDGE_STALL_TIMEOUT_S`."),
    Close("protocol", "The client broke the protocol; the close code says how."),
)
"""All other ways in which sockets end."""

REASONS = tuple(close.reason for close in (*OTHERS, *BY_EDGE.values()))


def reason_of(stalled: bool, end_code: int | None, code: int) -> str:
    """The reason, one of REASONS. `end_code` is the code this side has closed with, `code` the one that was seen."""
    if stalled:
        return "stalled"
    if end_code is not None:
        return BY_EDGE[end_code].reason if end_code in BY_EDGE else "protocol"
    return "lost" if code == LOST else "client"


def by_protocol(code: int, reason: str) -> Any:
    """The ASGI event that says that the protocol has closed the socket."""
    return {"type": "websocket.disconnect", "code": code, "reason": reason, BY_PROTOCOL: True}
