"""One open socket: answers requests and keeps its subscriptions."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from ws_edge.authorization import check_key
from ws_edge.errors import (
    CLOSE_EXPIRED,
    CLOSE_FLOOD,
    EdgeError,
    FrameFloodError,
    RequestError,
    TooManySubscriptionsError,
    UnavailableError,
)
from ws_edge.frames import CancelRequest, Dialect, RefreshRequest, WatchRequest
from ws_edge.gateway import Caller
from ws_edge.lease import Lease
from ws_edge.quotas import Share
from ws_edge.socket_writer import Send, SocketWriter
from ws_edge.states import StoreKey, Version
from ws_edge.stores import find
from ws_edge.subscription import Subscription
from ws_edge.surroundings import Surroundings

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class Session:
    """One socket. The hub hands it versions, which it passes on to its writer."""

    __slots__ = (
        "_around",
        "_consumer",
        "_dialect",
        "_lease",
        "_share",
        "_subscriptions",
        "_writer",
        "end_code",
        "stalled",
    )

    def __init__(self, around: Surroundings, caller: Caller, share: Share, dialect: Dialect, send: Send) -> None:
        self._around = around
        self._share = share
        self._consumer = caller.consumer
        self._dialect = dialect
        self._writer = SocketWriter(dialect, send, around.metrics.frames, around.clock)
        self._subscriptions: dict[StoreKey, Subscription] = {}
        self._lease = Lease(around.calendar, self._expire)
        self._lease.renew(caller.credential.expires_at)
        self.end_code: int | None = None
        """The code that this side has ended the session with."""
        self.stalled = False
        """Whether the socket is being cut off because its client does not read."""

    @property
    def writing_since(self) -> float | None:
        """When the frame that is being sent was handed to the socket; None while nothing is sent."""
        return self._writer.writing_since

    async def run(self, receive: Receive, first: WatchRequest | None = None) -> int:
        """Serves the socket until it is closed; returns the close code. `first` is a request made by the address."""
        try:
            if first is not None:
                self._answer(partial(self._watch, first), first.reference)
            while (event := await receive())["type"] == "websocket.receive":
                if self.end_code is not None:
                    continue
                self._answer(partial(self._handle, event), "")
                await self._writer.catch_up(self._around.limits.max_replies)
            return int(event.get("code") or 1005)
        finally:
            self._leave()

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket from this side, unless its client does not read anyway."""
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

    def started(self, subscription: Subscription, recovered: bool) -> None:
        """Confirms a subscription, if the dialect does."""
        reply = self._dialect.started(subscription, recovered)
        if reply is not None:
            self._writer.reply(reply)

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:
        """Puts a version into the outbox."""
        self._writer.put(version, snapshot)

    def refused(self, subscription: Subscription, error: RequestError) -> None:
        """Withdraws what is unsent and says why the subscription has ended."""
        key = subscription.watch.key
        self._subscriptions.pop(key, None)
        self._share.hold(len(self._subscriptions))
        self._writer.withdraw(key)
        self._fail(error, subscription.reference)

    def delayed(self, subscription: Subscription) -> None:
        """Says that the first answer takes long."""
        text = f"{subscription.watch.key} cannot be looked up now: keep the socket, the answer follows when it can be"
        self._fail(UnavailableError(text), subscription.reference)

    def _answer(self, act: Callable[[], None], reference: str) -> None:
        try:
            act()
        except FrameFloodError as error:
            self.end(CLOSE_FLOOD, str(error))
        except RequestError as error:
            self._fail(error, error.reference or reference)

    def _handle(self, event: Mapping[str, Any]) -> None:
        self._share.take_frame()
        request = self._dialect.parse(event)
        if isinstance(request, CancelRequest):
            self._cancel(request)
        elif isinstance(request, RefreshRequest):
            self._refresh(request)
        else:
            self._watch(request)

    def _watch(self, request: WatchRequest) -> None:
        around = self._around
        try:
            check_key(self._consumer, find(around.stores, request.key.store).rule, request.key)
            held = self._subscriptions.get(request.key)
            if held is None:
                self._share.check_subscription()
            if held is None and len(self._subscriptions) >= around.limits.max_subscriptions:
                limit = around.limits.max_subscriptions
                raise TooManySubscriptionsError(f"a socket may watch {limit} keys: cancel some, or open another socket")
        except RequestError as error:
            error.reference = request.reference
            raise
        if held is not None:
            around.hub.unsubscribe(held)
            self._writer.withdraw(request.key)
        interval = self._interval(request.interval_ms)
        subscription = around.hub.subscribe(
            self, self._consumer, request.key, request.after, interval, request.reference
        )
        if subscription.active:
            self._subscriptions[request.key] = subscription
            self._share.hold(len(self._subscriptions))

    def _cancel(self, request: CancelRequest) -> None:
        subscription = self._subscriptions.pop(request.key, None)
        if subscription is not None:
            self._around.hub.unsubscribe(subscription)
            self._share.hold(len(self._subscriptions))
        self._writer.withdraw(request.key)
        self._writer.reply(self._dialect.cancelled(request))

    def _refresh(self, request: RefreshRequest) -> None:
        try:
            credential = self._around.tickets.redeem(request.ticket, self._consumer)
        except RequestError as error:
            error.reference = request.reference
            raise
        self._lease.renew(credential.expires_at)
        self._writer.reply(self._dialect.authenticated(credential.expires_at, request.reference))

    def _expire(self) -> None:
        self.end(CLOSE_EXPIRED, "your credential has expired: sign in again, then connect")

    def _interval(self, interval_ms: int | None) -> float:
        limits = self._around.limits
        wanted = limits.default_interval_ms if interval_ms is None else interval_ms
        if wanted == 0:
            return 0.0
        return min(max(wanted, limits.min_interval_ms), limits.max_interval_ms) / 1000

    def _fail(self, error: EdgeError, reference: str) -> None:
        self._around.metrics.errors.labels(error.code).inc()
        self._writer.reply(self._dialect.failed(error, reference))

    def _unsubscribe_all(self) -> None:
        for subscription in self._subscriptions.values():
            self._around.hub.unsubscribe(subscription)
        self._subscriptions.clear()
        self._share.hold(0)

    def _leave(self) -> None:
        self._lease.cancel()
        self._unsubscribe_all()
        self._writer.stop()
