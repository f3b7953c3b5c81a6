"""One open socket: who is at its other end, its requests, its access, and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from statecast.push.v2.push_pb2 import Access, Hello, Reconnect
from ws_edge.auth.expiry import ExpiryTimer, expiry_of
from ws_edge.auth.gateway import Caller
from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.frames import Codec
from ws_edge.codec.requests import ClientRequest
from ws_edge.errors import BY_PROTOCOL, CLOSE_EXPIRED, CONTROL, RequestError
from ws_edge.session.context import SessionContext
from ws_edge.session.outbox import Send, SocketWriter
from ws_edge.session.pings import PING_S, Pings
from ws_edge.session.replies import Replies
from ws_edge.session.watches import Watches

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

PROTOCOL = 2
DONE_AT_ONCE = 50
"""How many watches of a frame begin or end before other sockets get their turn: about 3 ms."""
THROTTLE_STEP_S = 1.0
"""How often a socket that is not read looks whether it was ended."""
TICKET_RETRY_MS = 1000


@dataclass(slots=True, eq=False)
class Session:
    """One socket: reads its frames as fast as it may send them, and does as they ask.

    Objects that end a session refer to it, and are known to `run` alone, so that it is freed as soon as the socket is
    closed.
    """

    context: SessionContext
    caller: Caller
    """Who is at the other end, with the newest credential that was shown."""
    reservation: QuotaReservation
    codec: Codec
    has_read: Callable[[], bool]
    """As EdgeSocketProtocol.has_read."""
    send: InitVar[Send]
    writer: SocketWriter = field(init=False)
    stalled: bool = field(default=False, init=False)
    """Whether the socket was cut off because its client does not read."""
    throttled_s: float = field(default=0.0, init=False)
    """For how many seconds the socket was not read, because its client had sent more than it may."""
    _replies: Replies = field(init=False)
    _watches: Watches = field(init=False)
    _pings: Pings = field(init=False)

    def __post_init__(self, send: Send) -> None:
        context = self.context
        tally, max_bytes = context.metrics.frames, context.settings.max_sent_frame_bytes
        self.writer = SocketWriter(self.codec, tally, max_bytes, send, context.clock)
        self._replies = Replies(self.codec, self.writer, context.metrics)
        self._watches = Watches(context, self.caller.consumer, self.reservation, self.writer, self._replies)
        self._pings = Pings(context.clock())

    async def run(self, receive: Receive, first: ClientRequest | None = None) -> int:
        """Serves the socket until it is closed; returns the close code."""
        expiry = ExpiryTimer(self.context.wall_clock, self._expire)
        expires_in_s = self._begin_access(expiry)
        self.codec.attach(self.writer)
        try:
            self._replies.say(hello=self._hello(expires_in_s))
            if first is not None:
                await self.act(first, expiry)
            while (event := await receive())["type"] == "websocket.receive":
                if self.writer.end_code is not None:
                    await self.writer.closed()
                    continue
                request = self._read(event)
                await self._throttle(cost_of(event) + request.parts)
                await self.act(request, expiry)
                del event, request  # an idle socket would keep them
                await self.writer.catch_up()
            code = int(event.get("code") or 1005)
            if event.get(BY_PROTOCOL):
                self.writer.end_code = code
            return code
        finally:
            expiry.cancel()
            self._watches.close()
            self.codec.detach()
            self.writer.stop()

    def end(self, code: int, reason: str) -> None:
        """Ends the session: drops everything unsent, and closes the socket. Only the first call counts."""
        if self.writer.end_code is None:
            self._watches.close()
            self.writer.end(code, reason)

    def leave(self, delay_s: float) -> None:
        """Tells the client that the socket closes after the delay, and that it may connect again."""
        self._replies.say(reconnect=Reconnect(delay_ms=round(delay_s * 1000)))

    def is_stalled(self, now: float, timeout_s: float) -> bool:
        """Returns whether frames wait and the client has read nothing for so long. To be called every second."""
        writer = self.writer
        if self.has_read() and writer.writing_since is not None:
            writer.writing_since = now
        return writer.writing_since is not None and writer.writing_since < now - timeout_s

    def tick(self, now: float) -> None:
        """Pings the client if that is due. To be called every second."""
        if self.writer.end_code is not None or not self.writer.is_idle:
            return
        if self._pings.is_due(self._watches.places, self.writer.sent_at, now):
            self._ping(now)

    def end_outdated(self) -> Iterator[None]:
        """Ends the watches of stores that are others now; see Watches."""
        return self._watches.end_outdated()

    async def act(self, request: ClientRequest, expiry: ExpiryTimer) -> None:
        """Handles the requests of a frame, in the order of its parts, until the session has ended.

        Others get their turns between its watches.
        """
        steps = chain(
            (partial(self._watches.end, watch_id) for watch_id in request.unwatch),
            (partial(self._watches.begin, watch) for watch in request.watches),
        )
        for number, step in enumerate(steps, 1):
            if self.writer.end_code is not None:
                return
            step()
            if number % DONE_AT_ONCE == 0:
                await asyncio.sleep(0)
        if self.writer.end_code is not None:
            return
        if request.ticket is not None:
            self._renew(request.ticket, expiry)
        if request.ping:
            self._ping(self.context.clock())
        for error in request.errors:
            self._replies.error(error)
        for unknown in request.unknown:
            self._replies.warn(unknown.name, "unknown_field", unknown.text)

    def _read(self, event: Mapping[str, Any]) -> ClientRequest:
        if is_ping(event):
            return ClientRequest()
        try:
            return self.codec.read(event, self.context.finder(self.caller.consumer))
        except RequestError as error:
            return ClientRequest(errors=[error])

    async def _throttle(self, cost: float) -> None:
        """Pays for a frame; returns when its budgets owe nothing any more, or the socket ends or is lost."""
        for wait_s in self.reservation.pay_in_turn(cost):
            self.throttled_s += wait_s
            self.context.metrics.throttled_seconds.inc(wait_s)
            while wait_s > 0:
                await asyncio.sleep(min(wait_s, THROTTLE_STEP_S))
                if self.writer.end_code is not None or self.writer.is_lost:
                    return
                wait_s -= THROTTLE_STEP_S  # noqa: PLW2901

    def _renew(self, ticket: str, expiry: ExpiryTimer) -> None:
        try:
            credential = self.context.tickets.redeem(ticket, self.caller.consumer).credential
        except RequestError as error:
            self._replies.error(error, TICKET_RETRY_MS)
            return
        self.caller = replace(self.caller, credential=credential)
        self._replies.say(access=Access(expires_in_s=self._begin_access(expiry)))

    def _begin_access(self, expiry: ExpiryTimer) -> int:
        """Ends the socket when the access ends; returns after how many seconds that is."""
        now = self.context.wall_clock()
        expires_at = expiry_of(self.caller.credential, now, self.context.settings.max_access_s)
        expiry.renew(expires_at)
        return max(0, int(expires_at - now))

    def _ping(self, now: float) -> None:
        for ping in self._pings.pings(self._watches.places, self.writer, now):
            self._replies.say(ping=ping)

    def _hello(self, expires_in_s: int) -> Hello:
        settings = self.context.settings
        return Hello(
            protocol=PROTOCOL,
            expires_in_s=expires_in_s,
            ping_s=PING_S,
            max_frame_bytes=settings.max_sent_frame_bytes,
            max_request_bytes=settings.max_frame_bytes,
            max_watches=settings.max_watches,
        )

    def _expire(self) -> None:
        self.end(CLOSE_EXPIRED, "your access has ended: connect with a credential that holds")


def is_ping(event: Mapping[str, Any]) -> bool:
    """Returns whether a frame only counts: one of the protocol itself, or an empty message, as phones ping."""
    return CONTROL in event or event.get("bytes") == b""


def cost_of(event: Mapping[str, Any]) -> float:
    """Returns the cost of a frame without its watches: one, and one for each 1,024 bytes."""
    return 1.0 + len(event.get("text") or event.get("bytes") or "") / 1024
