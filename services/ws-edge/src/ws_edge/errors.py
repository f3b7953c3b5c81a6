"""The errors of the edge, with the stable code, HTTP status and close code of each, and why sockets are closed.

EdgeError                          any of them; the text gives the remedy
├── RequestError                   one request failed; the socket stays open
│   ├── MalformedFrameError        malformed_frame         400
│   │   └── MalformedWatchError    malformed_watch         400
│   ├── UnknownStoreError          unknown_store           404
│   ├── NoStateError               not_found               404
│   ├── ForbiddenError             forbidden               403
│   ├── TooManyWatchesError        too_many_watches        429
│   ├── TooManyRowsError           too_many_rows           429
│   ├── TooManyFieldListsError     too_many_field_lists    429
│   ├── StoreChangedError          store_changed           503
│   ├── IdUsedError                id_used                 400
│   ├── TooManyChannelsError       too_many_channels       429
│   ├── TicketRefusedError         ticket_refused          401
│   ├── UnknownChannelError        unknown_channel         404
│   ├── ChannelEndedError          channel_ended           404
│   ├── UnreadableRowError         unreadable_row          500
│   │   └── RowTooLargeError       row_too_large           500
│   ├── NotConfiguredError         not_configured          501
│   └── UnavailableError           unavailable             503
│       └── DeclinedError          unavailable             503
└── HandshakeError                 the socket is not opened, the call is not answered
    ├── GatewayRequiredError       gateway_required        403
    ├── TooManyHeadersError        too_many_headers        431
    ├── OriginRefusedError         origin_refused          403
    ├── UnknownPathError           unknown_path            404
    ├── TooManySocketsError        too_many_sockets        429
    ├── LeftError                  left                    400
    ├── RevokedError               revoked                 403
    └── BusyError                  busy                    503

Errors that keep the process from starting are those of `statecast_service`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

BY_PROTOCOL = "ws_edge.by_protocol"
"""Marks an ASGI `websocket.disconnect` event with a code that the protocol chose, not the peer."""

CONTROL = "ws_edge.control"
"""Marks an ASGI `websocket.receive` event of a frame that is no message, such as a ping: it only counts."""

LOST = 1006
"""The connection ended without a close frame; the code is never sent."""

NO_PONG = 1011
CLOSE_RESTART = 1012
CLOSE_FAILED = 1013
CLOSE_EXPIRED = 4401
CLOSE_REVOKED = 4403


class EdgeError(Exception):
    """Any error of the edge. The text names the fault and gives the remedy."""

    code = "internal"
    http_status = 500

    def __init_subclass__(cls, code: str | None = None, http_status: int | None = None) -> None:
        """Sets the code and the status that clients get; by default those of the base."""
        cls.code, cls.http_status = code or cls.code, http_status or cls.http_status


class RequestError(EdgeError):
    """One request failed."""


class MalformedFrameError(RequestError, code="malformed_frame", http_status=400):
    """The frame or the parameters cannot be understood."""


class MalformedWatchError(MalformedFrameError, code="malformed_watch", http_status=400):
    """A watch cannot be understood, or there can be none like it."""


class UnknownStoreError(RequestError, code="unknown_store", http_status=404):
    """There is no such store, or it is for staff."""


class NoStateError(RequestError, code="not_found", http_status=404):
    """There is no such order. REST only: a socket gets `Unknown`, and a page has no rows."""


class ForbiddenError(RequestError, code="forbidden", http_status=403):
    """The group belongs to somebody else, or the call is for staff."""


class TooManyWatchesError(RequestError, code="too_many_watches", http_status=429):
    """The socket, consumer, address or channel watches as much as it may."""


class TooManyRowsError(RequestError, code="too_many_rows", http_status=429):
    """The steps of a watch have brought more than the socket, consumer or address may watch."""


class TooManyFieldListsError(RequestError, code="too_many_field_lists", http_status=429):
    """The consumer watches a store by as many different lists of fields as it may: rows are encoded for each."""


class StoreChangedError(RequestError, code="store_changed", http_status=503):
    """The readers, private fields or message of a store are others now: the same may be asked again, and is checked."""


class IdUsedError(RequestError, code="id_used", http_status=400):
    """The id of a watch is not above all earlier ones of its socket."""


class TooManyChannelsError(RequestError, code="too_many_channels", http_status=429):
    """The consumer creates more channels an hour than it may."""


class TicketRefusedError(RequestError, code="ticket_refused", http_status=401):
    """The ticket is forged, too old, used before, or of another consumer."""


class UnknownChannelError(RequestError, code="unknown_channel", http_status=404):
    """There is no such channel, or it has expired."""

    def __init__(self, channel_id: str) -> None:
        text = f"there is no channel {channel_id[:80]!r}, or it has expired: create one with POST /v1/channels"
        super().__init__(text)


class ChannelEndedError(RequestError, code="channel_ended", http_status=404):
    """The channel has expired or was deleted while it was watched."""


class UnreadableRowError(RequestError, code="unreadable_row", http_status=500):
    """A row is not of its store's message, or cannot be written. Its watch goes on, and brings the next version."""


class RowTooLargeError(UnreadableRowError, code="row_too_large", http_status=500):
    """A row fits into no frame, or no answer of the query service. Its watch goes on, and brings the next version."""


class NotConfiguredError(RequestError, code="not_configured", http_status=501):
    """This edge has no Kafka to write to."""


class UnavailableError(RequestError, code="unavailable", http_status=503):
    """No replica of the key answers now; sockets are served as soon as one does."""


class DeclinedError(UnavailableError, code="unavailable", http_status=503):
    """The query service answers with a refusal: its operators or those of the edge must do something."""

    def __init__(self, text: str, status: int) -> None:
        """`status` is the number of the status of gRPC."""
        super().__init__(text)
        self.status = status


class HandshakeError(EdgeError):
    """The call or socket is refused before it is read."""


class GatewayRequiredError(HandshakeError, code="gateway_required", http_status=403):
    """The call did not come through the gateway, lacks one of its headers or has it twice, or names no consumer."""


class TooManyHeadersError(HandshakeError, code="too_many_headers", http_status=431):
    """The call or handshake has more headers than the edge reads."""


class OriginRefusedError(HandshakeError, code="origin_refused", http_status=403):
    """A browser opens the socket from a site that is not allowed to."""


class TooManySocketsError(HandshakeError, code="too_many_sockets", http_status=429):
    """The consumer or the address has as many sockets as it may, or opens them too fast."""


class UnknownPathError(HandshakeError, code="unknown_path", http_status=404):
    """No socket is served at this path."""


class BusyError(HandshakeError, code="busy", http_status=503):
    """This edge takes no more sockets now: connect again later."""

    def __init__(self, text: str, cause: str, busy_s: float = 0.0) -> None:
        """`cause` is the label of the metric: draining, full or pace. `busy_s` is how long it will last, if known."""
        super().__init__(text)
        self.cause = cause
        self.busy_s = busy_s


class LeftError(HandshakeError, code="left", http_status=400):
    """The client has gone, or sent something, before its handshake was answered."""


class RevokedError(HandshakeError, code="revoked", http_status=403):
    """The operators have ended the consumer's access."""


class Close(NamedTuple):
    """A way in which a socket ends."""

    reason: str
    """The label of the metric."""
    meaning: str


BY_EDGE: Mapping[int, Close] = {
    1009: Close("too_large", "A frame is larger than `WS_EDGE_MAX_FRAME_BYTES`."),
    NO_PONG: Close("no_pong", "The client does not answer pings."),
    CLOSE_RESTART: Close("restart", "The edge restarts: connect again, with your tokens."),
    CLOSE_FAILED: Close("failed", "The edge has a defect, which is in its log: connect again, with your tokens."),
    CLOSE_EXPIRED: Close("expired", "The access has ended and was not renewed: connect with a credential that holds."),
    CLOSE_REVOKED: Close("revoked", "The operators have ended the consumer's access."),
}
"""The reasons for which the edge closes sockets, by close code."""

OTHERS = (
    Close("client", "The client has closed the socket."),
    Close("lost", "The connection ended without a close frame."),
    Close("stalled", "Reset: the client has read next to nothing for `WS_EDGE_STALL_TIMEOUT_S`."),
    Close("protocol", "The client broke the protocol; the close code says how."),
)
"""All other ways in which sockets end."""

REASONS = tuple(close.reason for close in (*OTHERS, *BY_EDGE.values()))


def reason_of(stalled: bool, end_code: int | None, code: int) -> str:
    """Returns the reason, one of REASONS.

    `end_code` is the code this side has closed with, `code` the one that was seen.
    """
    if stalled:
        return "stalled"
    if end_code is not None:
        return BY_EDGE[end_code].reason if end_code in BY_EDGE else "protocol"
    return "lost" if code == LOST else "client"


def by_protocol(code: int, reason: str) -> Any:
    """Returns the ASGI event that says that the protocol has closed the socket."""
    return {"type": "websocket.disconnect", "code": code, "reason": reason, BY_PROTOCOL: True}
