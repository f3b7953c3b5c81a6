"""One open socket: who is at its other end, what is asked there, and when it ends."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any

from ws_edge.auth.expiry import ExpiryTimer
from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.frames import BeginRequest, FrameCodec, RefreshRequest, WatchRequest
from ws_edge.errors import (
    BY_PROTOCOL,
    CLOSE_EXPIRED,
    CLOSE_FLOOD,
    FrameFloodError,
    MalformedFrameError,
    RequestError,
)
from ws_edge.session.channel_feed import ChannelFeed
from ws_edge.session.context import SessionContext
from ws_edge.session.subscriptions import SessionSubscriptions
from ws_edge.session.writer import Send, SocketWriter

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(slots=True, eq=False)
class Session:
    """One socket. Its parts do not refer to it, so that it is freed as soon as the socket is closed."""

    context: SessionContext
    caller: Caller
    """Who is at the other end, with the newest credential that was shown."""
    reservation: QuotaReservation
    codec: FrameCodec
    send: InitVar[Send]
    writer: SocketWriter = field(init=False)
    subscriptions: SessionSubscriptions = field(init=False)
    stalled: bool = field(default=False, init=False)
    """Whether the socket was cut off because its client does not read."""
    _expiry: ExpiryTimer = field(init=False)
    _feed: ChannelFeed | None = field(default=None, init=False)

    def __post_init__(self, send: Send) -> None:
        context, consumer = self.context, self.caller.consumer
        self.writer = SocketWriter(self.codec, send, context.metrics.frames, context.clock)
        self.subscriptions = SessionSubscriptions(context, consumer, self.codec, self.reservation, self.writer)
        reason = "your credential has expired: sign in again, then connect"
        self._expiry = ExpiryTimer(context.wall_clock, partial(self.subscriptions.end, CLOSE_EXPIRED, reason))

    async def run(self, receive: Receive, first: WatchRequest | None = None, feed: ChannelFeed | None = None) -> int:
        """Serves the socket until it is closed; returns the close code.

        `first` is a request made by the address, `feed` that of the channel to which the socket is attached.
        """
        self._feed = feed
        self._expiry.renew(self.caller.credential.expires_at)
        try:
            if first is not None:
                self.subscriptions.act(first)
            while (event := await receive())["type"] == "websocket.receive":
                if self.writer.end_code is not None:
                    continue
                self._handle(event)
                await self.writer.catch_up(self.context.limits.max_replies)
            code = int(event.get("code") or 1005)
            if event.get(BY_PROTOCOL):
                self.writer.end_code = code
            return code
        finally:
            self._expiry.cancel()
            self.subscriptions.close()
            self.writer.stop()

    def announce_reconnect(self, delay_ms: int) -> None:
        """Tells the client that the socket will be closed in so many milliseconds."""
        self.writer.reply(self.codec.reconnect(delay_ms))

    def end(self, code: int, reason: str) -> None:
        """Ends the session: what is unsent is dropped, and the socket is closed. Only the first call counts."""
        if self._feed is not None:
            self._feed.close()
        self.subscriptions.end(code, reason)

    def _handle(self, event: Mapping[str, Any]) -> None:
        reference = ""
        try:
            self.reservation.take_frame()
            request = self.codec.parse(event)
            reference = request.reference
            if isinstance(request, RefreshRequest):
                self._refresh(request)
            elif isinstance(request, BeginRequest):
                self._begin(request)
            else:
                self.subscriptions.act(request)
        except FrameFloodError as error:
            self.end(CLOSE_FLOOD, str(error))
        except RequestError as error:
            self.subscriptions.fail(error, error.reference or reference)

    def _begin(self, request: BeginRequest) -> None:
        if self._feed is None:
            text = "begin is for the socket of a channel: connect to /v1/channels/CHANNEL/stream"
            raise MalformedFrameError(text)
        self._feed.begin(request)

    def _refresh(self, request: RefreshRequest) -> None:
        credential = self.context.tickets.redeem(request.ticket, self.caller.consumer)
        self.caller = replace(self.caller, credential=credential)
        self._expiry.renew(credential.expires_at)
        self.writer.reply(self.codec.authenticated(credential.expires_at, request.reference))
