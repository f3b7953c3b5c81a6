"""What can go wrong at the edge, with the stable word, HTTP status and close code of each, in this one place.

EdgeError                        any of them; the text says what to do
├── SettingsError                fatal: the process ends with its text and status 2
├── RequestError                 one request failed; the socket stays open
│   ├── MalformedFrameError      malformed_frame          400
│   ├── UnknownStoreError        unknown_store            404
│   ├── NoStateError             not_found                404   (REST only: a socket is told `Unknown`)
│   ├── ForbiddenError           forbidden                403   somebody else's row, or a store for staff
│   ├── TooManySubscriptionsError too_many_subscriptions  429
│   ├── TooManyChannelsError     too_many_channels        429   more than so many an hour
│   ├── TooManyFramesError       too_many_frames          429   more than so many a second
│   │   └── FrameFloodError      too_many_frames          429   and no end: the socket is closed with CLOSE_FLOOD
│   ├── TicketRefusedError       ticket_refused           403   not ours, too old, or somebody else's
│   ├── UnknownChannelError      unknown_channel          404   there is none, or it has expired
│   ├── NotConfiguredError       not_configured           501   this edge has no Kafka to write to
│   └── UnavailableError         unavailable              503   no replica answers; it is retried
└── HandshakeError               the socket is not opened, the call is not answered
    ├── GatewayRequiredError     gateway_required         403   not through the gateway, or without a consumer
    ├── OriginRefusedError       origin_refused           403   a browser, on a site that may not open sockets
    ├── UnknownPathError         unknown_path             404
    ├── TooManySocketsError      too_many_sockets         429   the consumer or the address has as many as it may
    ├── RevokedError             revoked                  403   the consumer's access was ended by the operators
    └── BusyError                busy                     503   draining, full, or too many at a time: try again
"""

CLOSE_RESTART = 1012
"""Sent to every socket when the process drains: connect again, with your positions."""

CLOSE_EXPIRED = 4401
"""The credential behind the socket has expired and was not renewed: sign in again, then connect."""

CLOSE_REVOKED = 4403
"""The consumer's access was ended by the operators."""

CLOSE_CHANNEL_ENDED = 4404
"""The channel to which the socket is attached has expired or was deleted: create another one."""

CLOSE_SLOW = 4408
"""More waits for the client than may: it reads too slowly for what it watches."""

CLOSE_FLOOD = 4429
"""The client sends far more frames than it may, and goes on with it."""


class EdgeError(Exception):
    """The text says what is wrong and what to do about it."""

    code = "internal"
    http_status = 500


class SettingsError(EdgeError):
    """The process cannot start."""


class RequestError(EdgeError):
    """One request failed. `reference` names the request as its client does: an order id, or the id of its frame."""

    def __init__(self, text: str, reference: str = "") -> None:
        super().__init__(text)
        self.reference = reference


class MalformedFrameError(RequestError):
    """The frame or the parameters cannot be understood."""

    code = "malformed_frame"
    http_status = 400


class UnknownStoreError(RequestError):
    """There is no such store."""

    code = "unknown_store"
    http_status = 404


class NoStateError(RequestError):
    """The key has no value."""

    code = "not_found"
    http_status = 404


class ForbiddenError(RequestError):
    """The row belongs to somebody else, or the store is for staff."""

    code = "forbidden"
    http_status = 403


class TooManySubscriptionsError(RequestError):
    """The socket watches as many keys as it may."""

    code = "too_many_subscriptions"
    http_status = 429


class TooManyChannelsError(RequestError):
    """The consumer creates more channels than it may."""

    code = "too_many_channels"
    http_status = 429


class TooManyFramesError(RequestError):
    """The consumer or the address sends more frames than it may; this one was not read."""

    code = "too_many_frames"
    http_status = 429


class FrameFloodError(TooManyFramesError):
    """The client has been told often enough."""


class TicketRefusedError(RequestError):
    """The ticket does not renew the access of this socket."""

    code = "ticket_refused"
    http_status = 403


class UnknownChannelError(RequestError):
    """There is no such channel."""

    code = "unknown_channel"
    http_status = 404

    def __init__(self, channel_id: str) -> None:
        super().__init__(
            f"there is no channel {channel_id[:80]!r}, or it has expired: create one with POST /v1/channels"
        )


class NotConfiguredError(RequestError):
    """What was asked for is off at this edge."""

    code = "not_configured"
    http_status = 501


class UnavailableError(RequestError):
    """No replica of the key answers now."""

    code = "unavailable"
    http_status = 503


class HandshakeError(EdgeError):
    """The call is refused before it is read."""


class GatewayRequiredError(HandshakeError):
    """The call did not come through the gateway, or the gateway named no consumer."""

    code = "gateway_required"
    http_status = 403


class OriginRefusedError(HandshakeError):
    """A browser opens the socket from a site that is not allowed to."""

    code = "origin_refused"
    http_status = 403


class TooManySocketsError(HandshakeError):
    """The consumer or the address has as many sockets as it may."""

    code = "too_many_sockets"
    http_status = 429


class UnknownPathError(HandshakeError):
    """No socket is served here."""

    code = "unknown_path"
    http_status = 404


class BusyError(HandshakeError):
    """This edge takes no more sockets now; `cause` is draining, full or pace."""

    code = "busy"
    http_status = 503

    def __init__(self, text: str, cause: str) -> None:
        super().__init__(text)
        self.cause = cause


class RevokedError(HandshakeError):
    """The consumer's access was ended by the operators."""

    code = "revoked"
    http_status = 403
