"""One open socket: who is at its other end, what is asked there, and when it ends."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from ws_edge.access.gateway import Caller
from ws_edge.access.lease import Lease
from ws_edge.access.quotas import Share
from ws_edge.closes import BY_PROTOCOL
from ws_edge.dialects.frames import (
    BeginRequest,
    CancelRangeRequest,
    CancelRequest,
    Dialect,
    RefreshRequest,
    Request,
    WatchRangeRequest,
    WatchRequest,
)
from ws_edge.errors import (
    CLOSE_EXPIRED,
    CLOSE_FLOOD,
    EdgeError,
    FrameFloodError,
    MalformedFrameError,
    RequestError,
)
from ws_edge.hub.outbox import Reply
from ws_edge.sockets.session_keys import SessionKeys
from ws_edge.sockets.session_ranges import SessionRanges
from ws_edge.sockets.socket_writer import Send, SocketWriter
from ws_edge.sockets.surroundings import Feed, Surroundings
from ws_edge.states import AnyKey, Position, RangeKey

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class Session:
    """One socket; a Desk for the keys and the ranges that it watches."""

    __slots__ = (
        "_around",
        "_dialect",
        "_keys",
        "_lease",
        "_ranges",
        "_share",
        "_writer",
        "caller",
        "end_code",
        "feed",
        "stalled",
    )

    def __init__(self, around: Surroundings, caller: Caller, share: Share, dialect: Dialect, send: Send) -> None:
        self.caller = caller
        """Who is at the other end, with the newest credential that was shown."""
        self._around = around
        self._share = share
        self._dialect = dialect
        self._writer = SocketWriter(dialect, send, around.metrics.frames, around.clock)
        self._keys = SessionKeys(around, caller.consumer, dialect, share, self._writer, self)
        self._ranges = SessionRanges(around, caller.consumer, dialect, share, self._writer, self)
        self._lease = Lease(around.calendar, self._expire)
        self.end_code: int | None = None
        """The code that this side has ended the session with."""
        self.stalled = False
        """Whether the socket is being cut off because its client does not read."""
        self.feed: Feed | None = None
        """What `begin` starts; None on sockets without a channel."""

    @property
    def writing_since(self) -> float | None:
        """When the frame that is being sent was handed to the socket; None while nothing is sent."""
        return self._writer.writing_since

    async def run(self, receive: Receive, first: WatchRequest | None = None) -> int:
        """Serves the socket until it is closed; returns the close code. `first` is a request made by the address."""
        self._lease.renew(self.caller.credential.expires_at)
        try:
            if first is not None:
                self.act(first)
            while (event := await receive())["type"] == "websocket.receive":
                if self.end_code is not None:
                    continue
                self._handle(event)
                await self._writer.catch_up(self._around.limits.max_replies)
            code = int(event.get("code") or 1005)
            if event.get(BY_PROTOCOL):
                self.end_code = code
            return code
        finally:
            self._leave()

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket from this side, unless its client does not read anyway."""
        self.end_code = code
        await self._writer.close(code, reason)

    def announce_reconnect(self, delay_ms: int) -> None:
        """Tells the client that the socket will be closed in so many milliseconds."""
        self._writer.reply(self._dialect.reconnect(delay_ms))

    def end(self, code: int, reason: str) -> None:
        """Ends the session at once: nothing that is unsent is sent any more, and the socket is closed."""
        if self.end_code is None:
            self.end_code = code
            self._unsubscribe_all()
            self._writer.end(code, reason)

    def reply(self, reply: Reply) -> None:
        """Sends a frame."""
        self._writer.reply(reply)

    def act(self, request: Request) -> None:
        """Does what is asked, by the client or in its stead; a failure is told to the client."""
        try:
            self._act(request)
        except RequestError as error:
            self.fail(error, request.reference)

    def watches(self, key: AnyKey) -> bool:
        """Whether the key or range is watched on this socket."""
        return key in self._ranges if isinstance(key, RangeKey) else key in self._keys

    def reached(self, key: AnyKey) -> Position | None:
        """Through which the client has been sent everything of it; None when that is nothing, or not all."""
        return self._ranges.reached(key) if isinstance(key, RangeKey) else self._keys.reached(key)

    def count(self) -> None:
        """Tells the quotas how much is watched."""
        self._share.hold(len(self._keys) + len(self._ranges))

    def fail(self, error: EdgeError, reference: str) -> None:
        """Says why a request failed."""
        self._around.metrics.errors.labels(error.code).inc()
        self._writer.reply(self._dialect.failed(error, reference))

    def _handle(self, event: Mapping[str, Any]) -> None:
        try:
            self._share.take_frame()
            request = self._dialect.parse(event)
        except FrameFloodError as error:
            self.end(CLOSE_FLOOD, str(error))
        except RequestError as error:
            self.fail(error, error.reference)
        else:
            self.act(request)

    def _act(self, request: Request) -> None:
        match request:
            case WatchRequest():
                self._keys.watch(request)
            case CancelRequest():
                self._keys.cancel(request)
            case RefreshRequest():
                self._refresh(request)
            case BeginRequest():
                self._begin(request)
            case WatchRangeRequest():
                self._ranges.watch(request)
            case CancelRangeRequest():
                self._ranges.cancel(request)

    def _begin(self, request: BeginRequest) -> None:
        if self.feed is None:
            raise MalformedFrameError("begin is for the socket of a channel: connect to /v1/channels/CHANNEL/stream")
        self.feed.begin(request)

    def _refresh(self, request: RefreshRequest) -> None:
        credential = self._around.tickets.redeem(request.ticket, self.caller.consumer)
        self.caller = replace(self.caller, credential=credential)
        self._lease.renew(credential.expires_at)
        self._writer.reply(self._dialect.authenticated(credential.expires_at, request.reference))

    def _expire(self) -> None:
        self.end(CLOSE_EXPIRED, "your credential has expired: sign in again, then connect")

    def _unsubscribe_all(self) -> None:
        if self.feed is not None:
            self.feed.close()
        self._keys.end_all()
        self._ranges.end_all()
        self._share.hold(0)

    def _leave(self) -> None:
        self._lease.cancel()
        self._unsubscribe_all()
        self._writer.stop()
