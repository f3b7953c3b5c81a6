"""One open socket: reads requests, keeps its subscriptions, and writes what its outbox holds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import time_ns
from typing import Any

import structlog

from ws_edge import eager_task
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
from ws_edge.frames import CancelRequest, Dialect, RefreshRequest, WatchRequest, frame_of
from ws_edge.gateway import Caller
from ws_edge.lease import Lease
from ws_edge.outbox import Outbox, Reply
from ws_edge.quotas import Share
from ws_edge.states import StoreKey, Version
from ws_edge.stores import find
from ws_edge.subscription import Subscription
from ws_edge.surroundings import Surroundings

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]

log = structlog.get_logger(__name__)


class Session:
    """One socket. The hub hands it versions; a task that lives only while there is something to send writes them."""

    __slots__ = (
        "_around",
        "_consumer",
        "_dialect",
        "_ending",
        "_lease",
        "_outbox",
        "_send",
        "_share",
        "_subscriptions",
        "_writer",
        "end_code",
        "stalled",
        "writing_since",
    )

    def __init__(self, around: Surroundings, caller: Caller, share: Share, dialect: Dialect, send: Send) -> None:
        self._around = around
        self._share = share
        self._consumer = caller.consumer
        self._dialect = dialect
        self._send = send
        self._outbox = Outbox()
        self._subscriptions: dict[StoreKey, Subscription] = {}
        self._writer: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._lease = Lease(around.calendar, self._expire)
        self._lease.renew(caller.credential.expires_at)
        self.end_code: int | None = None
        """The code that this side has ended the session with."""
        self.writing_since: float | None = None
        """When the frame that is being sent was handed to the socket; None while nothing is sent."""
        self.stalled = False
        """Whether the socket is being cut off because its client does not read."""

    async def run(self, receive: Receive, first: WatchRequest | None = None) -> int:
        """Serves the socket until it is closed; returns the close code. `first` is a request made by the address."""
        try:
            if first is not None:
                self._answer(partial(self._watch, first), first.reference)
            while (event := await receive())["type"] == "websocket.receive":
                if self.end_code is not None:
                    continue
                self._answer(partial(self._handle, event), "")
                while self._outbox.replies >= self._around.limits.max_replies and self._writer is not None:
                    await asyncio.wait({self._writer})
            return int(event.get("code") or 1005)
        finally:
            self._leave()

    async def close(self, code: int, reason: str) -> None:
        """Closes the socket from this side, unless its client does not read anyway."""
        if self.writing_since is None:
            await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def end(self, code: int, reason: str) -> None:
        """Ends the session at once: nothing that is unsent is sent any more, and the socket is closed."""
        if self.end_code is None:
            self.end_code = code
            self._unsubscribe_all()
            self._outbox.clear()
            self._ending = eager_task.start(self._end({"type": "websocket.close", "code": code, "reason": reason}))

    def started(self, subscription: Subscription, recovered: bool) -> None:
        """Confirms a subscription, if the dialect does."""
        reply = self._dialect.started(subscription, recovered)
        if reply is not None:
            self._reply(reply)

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:
        """Puts a version into the outbox."""
        if self._outbox.put(version, snapshot):
            self._around.metrics.frames.skipped += 1
        if self._writer is None:
            self._writer = eager_task.start(self._write())

    def refused(self, subscription: Subscription, error: RequestError) -> None:
        """Withdraws what is unsent and says why the subscription has ended."""
        key = subscription.watch.key
        self._subscriptions.pop(key, None)
        self._share.hold(len(self._subscriptions))
        self._outbox.withdraw(key)
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
            self._outbox.withdraw(request.key)
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
        self._outbox.withdraw(request.key)
        self._reply(self._dialect.cancelled(request))

    def _refresh(self, request: RefreshRequest) -> None:
        try:
            credential = self._around.tickets.redeem(request.ticket, self._consumer)
        except RequestError as error:
            error.reference = request.reference
            raise
        self._lease.renew(credential.expires_at)
        self._reply(self._dialect.authenticated(credential.expires_at, request.reference))

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
        self._reply(self._dialect.failed(error, reference))

    def _reply(self, reply: Reply) -> None:
        self._outbox.reply(reply)
        if self._writer is None:
            self._writer = eager_task.start(self._write())

    async def _write(self) -> None:
        frames = self._around.metrics.frames
        try:
            while (item := self._outbox.take()) is not None:
                reply = item.reply if item.version is None else frame_of(self._dialect, item.version, item.skipped)
                self.writing_since = self._around.clock()
                await self._send(reply)  # type: ignore[arg-type]  # an item without a version is a reply
                frames.sent += 1
                if item.version is not None and item.version.commit_ns is not None and not item.snapshot:
                    frames.aged((time_ns() - item.version.commit_ns) / 1e9)
        except OSError:
            return  # the socket is closed; its reader hears of it as well
        except Exception:
            # A frame that cannot be made must not reach the hub, which tells many others as well.
            log.exception("frame_failed")
        finally:
            self.writing_since = None
            self._writer = None

    async def _end(self, close: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait({self._writer})
        self.writing_since = self._around.clock()
        try:
            await self._send(close)
        except OSError:
            return  # the client was faster
        finally:
            self.writing_since = None

    def _unsubscribe_all(self) -> None:
        for subscription in self._subscriptions.values():
            self._around.hub.unsubscribe(subscription)
        self._subscriptions.clear()
        self._share.hold(0)

    def _leave(self) -> None:
        self._lease.cancel()
        self._unsubscribe_all()
        for task in (self._writer, self._ending):
            if task is not None:
                task.cancel()
