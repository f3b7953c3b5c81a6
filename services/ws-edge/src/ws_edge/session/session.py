"""One open socket: who is at its other end, its watches, its requests, and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from random import randrange
from typing import Any

from statecast.push.v2.push_pb2 import Access, Ended, Hello, Problem, Reconnect, ServerFrame
from ws_edge.auth.expiry import ExpiryTimer, expiry_of
from ws_edge.auth.gateway import Caller, Tickets
from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.frames import Codec, PlaceFrame
from ws_edge.codec.requests import ChannelRequest, ClientRequest, RefusedWatch, UnknownField, WatchRequest
from ws_edge.errors import (
    BY_PROTOCOL,
    CLOSE_EXPIRED,
    CLOSE_RESTART,
    CONTROL,
    EdgeError,
    IdUsedError,
    RequestError,
    StoreChangedError,
    TooManySubscriptionsError,
)
from ws_edge.metrics import Metrics
from ws_edge.model.query_specs import check_rights
from ws_edge.model.states import AnyKey, Path, RangeKey
from ws_edge.model.stores import Stores, find
from ws_edge.session.channel_watch import ChannelListener, ChannelWatch
from ws_edge.session.outbox import Outbox, Send, SocketWriter
from ws_edge.session.pings import PING_S, Pings
from ws_edge.session.tree import Listener, Place, Tree, weight
from ws_edge.settings import Settings
from ws_edge.watches.hub import Hub

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

PROTOCOL = 2
THROTTLE_STEP_S = 1.0
"""How often a socket that is not read looks whether it was ended."""
MAX_WARNINGS = 16
STORE_CHANGED_SPREAD_MS = 5000
"""Watchers of a store that has changed come back at random times within it."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """All that the sessions of an edge share, and the limits of each of them."""

    hub: Hub
    stores: Stores
    settings: Settings
    metrics: Metrics
    tickets: Tickets
    clock: Callable[[], float]
    wall_clock: Callable[[], float]

    def interval(self, interval_ms: int | None, store: str) -> float:
        """Returns the interval that is granted, in seconds; 0 asks for no time between two frames.

        Without one it is that of the store, or else of the settings.
        """
        settings, wanted = self.settings, interval_ms
        if wanted is None:
            wanted = find(self.stores, store).interval_ms or settings.default_interval_ms
        return min(max(wanted, settings.min_interval_ms), settings.max_interval_ms) / 1000 if wanted else 0.0

    def granted(self, key: AnyKey) -> AnyKey:
        """Returns the key as it is watched: a range gets the limit that is granted."""
        if not isinstance(key, RangeKey):
            return key
        return key._replace(limit=min(key.limit or self.settings.page_size, self.settings.max_members))


@dataclass(slots=True, eq=False)
class Session(Listener, ChannelListener):
    """One socket: begins and ends its watches, and hands the writer those that have something to send.

    Objects that end a session refer to it, and are known to `run` alone, so that it is freed as soon as the socket is
    closed.
    """

    context: SessionContext
    caller: Caller
    """Who is at the other end, with the newest credential that was shown."""
    reservation: QuotaReservation
    codec: Codec
    send: InitVar[Send]
    writer: SocketWriter = field(init=False)
    stalled: bool = field(default=False, init=False)
    """Whether the socket was cut off because its client does not read."""
    throttled_s: float = field(default=0.0, init=False)
    """For how many seconds the socket was not read, because its client had sent more than it may."""
    _pings: Pings = field(init=False)
    _trees: dict[int, Tree | ChannelWatch] = field(default_factory=dict, init=False)
    _highest: int = field(default=0, init=False)
    """The highest id of a watch so far."""
    _warned: set[str] = field(default_factory=set, init=False)

    def __post_init__(self, send: Send) -> None:
        context, now = self.context, self.context.clock()
        outbox = Outbox(self.codec, context.metrics.frames, context.settings.max_sent_frame_bytes)
        self.writer = SocketWriter(outbox, send, context.clock)
        self._pings = Pings(now)

    async def run(self, receive: Receive, first: ClientRequest | None = None) -> int:
        """Serves the socket until it is closed; returns the close code."""
        expiry = ExpiryTimer(self.context.wall_clock, self._expire)
        expires_at = self._expires_at()
        expiry.renew(expires_at)
        self.codec.attach(self.writer)
        try:
            self._say(hello=self._hello(expires_at))
            if first is not None:
                self.act(first, expiry)
            while (event := await receive())["type"] == "websocket.receive":
                if self.writer.end_code is not None:
                    await self.writer.closed()
                    continue
                request = self._read(event)
                await self._throttle(cost_of(event) + request.parts)
                self.act(request, expiry)
                await self.writer.catch_up(self.context.settings.max_replies)
            code = int(event.get("code") or 1005)
            if event.get(BY_PROTOCOL):
                self.writer.end_code = code
            return code
        finally:
            expiry.cancel()
            self._close_all()
            self.codec.detach()
            self.writer.stop()

    def end(self, code: int, reason: str) -> None:
        """Ends the session: drops everything unsent, and closes the socket. Only the first call counts."""
        if self.writer.end_code is None:
            self._close_all()
            self.writer.end(code, reason)

    def leave(self, delay_s: float) -> None:
        """Tells the client that the socket closes after the delay, and that it may connect again."""
        self._say(reconnect=Reconnect(delay_ms=round(delay_s * 1000)))

    def tick(self, now: float) -> None:
        """Pings the client if that is due. To be called every second."""
        if self.writer.end_code is not None:
            return
        if self.writer.writing_since is None and self._pings.is_due(self._places(), self.writer.sent_at, now):
            self._ping(now)

    def end_stores(self, stores: Collection[str]) -> None:
        """Ends all watches of these stores, which are others now, and tells the client when to ask for them again."""
        for tree in tuple(self._trees.values()):
            if isinstance(tree, ChannelWatch):
                tree.restart(stores)
            elif not tree.stores.isdisjoint(stores):
                names = " and ".join(sorted(tree.stores.intersection(stores)))
                error = StoreChangedError(f"the store {names} has changed: ask again")
                self._end_tree(tree, error, retry_ms=randrange(STORE_CHANGED_SPREAD_MS))  # noqa: S311  it is no secret

    def act(self, request: ClientRequest, expiry: ExpiryTimer) -> None:
        """Does what a frame asks for, in the order of its parts, unless the session has ended."""
        if self.writer.end_code is not None:
            return
        for watch_id in request.unwatch:
            self._unwatch(watch_id)
        for watch in request.watches:
            self._begin(watch)
        if request.ticket is not None:
            self._renew(request.ticket, expiry)
        if request.ping:
            self._ping(self.context.clock())
        for error in request.errors:
            self._error(error)
        for unknown in request.unknown:
            self._warn(unknown, "unknown_field")

    def ready(self, place: Place | ChannelWatch, /) -> None:
        self.writer.ready(place)

    def withdraw(self, place: Place | ChannelWatch, /) -> None:
        self.writer.outbox.withdraw(place)

    def place_ended(self, tree_id: int, path: Path, error: RequestError | None = None, /) -> None:
        ended = Ended() if error is None else Ended(code=error.code, message=str(error))
        self._put(PlaceFrame(tree_id, path, ended=ended))

    def tree_of(self, request: WatchRequest, channel: ChannelWatch, name: str, /) -> Tree:
        interval = self._check(request)
        return Tree(request, self.caller.consumer, self.context.hub, self, interval, channel, (name,))

    def failed(self, tree: Tree | ChannelWatch, error: RequestError, /) -> None:
        self._end_tree(tree, error)

    def granted(self, key: AnyKey, /) -> AnyKey:
        return self.context.granted(key)

    def check_place(self, key: AnyKey, /) -> None:
        limit = self.context.settings.max_query_ranges
        if sum(1 for place in self._places() if place.full_path) >= limit:
            text = f"the steps of a socket's watches may bring {limit} places: give narrower limits"
            raise TooManySubscriptionsError(text)
        self.reservation.check_subscription(weight(key, 0.0))

    def count(self) -> None:
        self.reservation.hold(sum(tree.weight for tree in self._trees.values()))

    def _places(self) -> Iterator[Place | ChannelWatch]:
        return (place for tree in self._trees.values() for place in tree.walk())

    def _read(self, event: Mapping[str, Any]) -> ClientRequest:
        if is_ping(event):
            return ClientRequest()
        try:
            return self.codec.read(event, self.context.stores)
        except RequestError as error:
            return ClientRequest(errors=[error])

    async def _throttle(self, cost: float) -> None:
        """Pays for a frame; returns when its budgets owe nothing any more, or the socket ends."""
        wait_s = self.reservation.pay(cost)
        self.throttled_s += wait_s
        self.context.metrics.throttled_seconds.inc(wait_s)
        while wait_s > 0 and self.writer.end_code is None:
            await asyncio.sleep(min(wait_s, THROTTLE_STEP_S))
            wait_s -= THROTTLE_STEP_S

    def _begin(self, request: WatchRequest | ChannelRequest | RefusedWatch) -> None:
        if request.id <= self._highest:
            text = f"watch {request.id}: the id is not above {self._highest}, the highest of this socket: take the next"
            self._error(IdUsedError(text))
            return
        self._highest = request.id
        try:
            if isinstance(request, RefusedWatch):
                raise request.error
            if len(self._trees) >= (limit := self.context.settings.max_subscriptions):
                raise TooManySubscriptionsError(f"a socket may have {limit} watches: end some, or open another socket")
            tree = self._trees[request.id] = self._tree(request)
            tree.begin()
        except RequestError as error:
            self._trees.pop(request.id, None)
            self._put_ended(request.id, error)

    def _tree(self, request: WatchRequest | ChannelRequest) -> Tree | ChannelWatch:
        context, consumer = self.context, self.caller.consumer
        if isinstance(request, WatchRequest):
            return Tree(request, consumer, context.hub, self, self._check(request))
        limit = context.settings.max_channel_subscriptions
        return ChannelWatch(request, consumer, context.hub, context.stores, self, context.wall_clock, limit)

    def _check(self, request: WatchRequest) -> float:
        """Returns the interval that is granted, in seconds. Raises RequestError when the watch may not begin."""
        context = self.context
        check_rights(self.caller.consumer, request.key, request.steps, context.stores)
        interval = context.interval(request.interval_ms, request.store.name)
        self.reservation.check_subscription(weight(context.granted(request.key), interval))
        return interval

    def _unwatch(self, watch_id: int) -> None:
        tree = self._trees.get(watch_id)
        if tree is not None:
            self._end_tree(tree, None)
        elif watch_id > self._highest:
            self._warn(UnknownField(f"unwatch {watch_id}", f"unwatch: there was no watch {watch_id}"), "unknown_watch")

    def _end_tree(self, tree: Tree | ChannelWatch, error: RequestError | None, retry_ms: int | None = None) -> None:
        if self._trees.pop(tree.id, None) is None:
            return
        tree.close()
        self.count()
        if error is None:
            self._put(PlaceFrame(tree.id, ended=Ended()))
        else:
            self._put_ended(tree.id, error, retry_ms)

    def _close_all(self) -> None:
        for tree in tuple(self._trees.values()):
            del self._trees[tree.id]
            tree.close()
        self.count()

    def _renew(self, ticket: str, expiry: ExpiryTimer) -> None:
        try:
            credential = self.context.tickets.redeem(ticket, self.caller.consumer).credential
        except RequestError as error:
            self._error(error, retry_ms=1000)
            return
        self.caller = replace(self.caller, credential=credential)
        expires_at = self._expires_at()
        expiry.renew(expires_at)
        self._say(access=Access(expires_in_s=self._seconds_until(expires_at)))

    def _ping(self, now: float) -> None:
        self._say(ping=self._pings.ping(self._places(), self.writer.outbox, now))

    def _hello(self, expires_at: float) -> Hello:
        settings = self.context.settings
        return Hello(
            protocol=PROTOCOL,
            expires_in_s=self._seconds_until(expires_at),
            ping_s=PING_S,
            max_frame_bytes=settings.max_sent_frame_bytes,
            max_request_bytes=settings.max_frame_bytes,
            max_watches=settings.max_subscriptions,
        )

    def _expires_at(self) -> float:
        context = self.context
        return expiry_of(self.caller.credential, context.wall_clock(), context.settings.max_socket_age_s)

    def _seconds_until(self, time: float) -> int:
        return max(0, int(time - self.context.wall_clock()))

    def _expire(self) -> None:
        if self.caller.credential.expires_at is not None:
            self.end(CLOSE_EXPIRED, "your credential has expired: sign in again, then connect")
        elif self.writer.end_code is None:
            self.leave(0.0)
            self.writer.close(CLOSE_RESTART, "this socket is as old as it may be: connect again with your tokens")

    def _put_ended(self, watch_id: int, error: EdgeError, retry_ms: int | None = None) -> None:
        self.context.metrics.errors.labels(error.code).inc()
        self._put(PlaceFrame(watch_id, ended=Ended(code=error.code, message=str(error), retry_ms=retry_ms)))

    def _put(self, frame: PlaceFrame) -> None:
        for each in self.codec.place_frames(frame):
            self.writer.put(each)

    def _error(self, error: EdgeError, retry_ms: int | None = None) -> None:
        self.context.metrics.errors.labels(error.code).inc()
        self._say(error=Problem(code=error.code, message=str(error), retry_ms=retry_ms))

    def _warn(self, unknown: UnknownField, code: str) -> None:
        if unknown.name not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(unknown.name)
            self._say(warning=Problem(code=code, message=unknown.text))

    def _say(self, **content: Any) -> None:
        self.writer.put(self.codec.socket_frame(ServerFrame(**content)))


def is_ping(event: Mapping[str, Any]) -> bool:
    """Whether it is a frame that only counts: one of the protocol itself, or an empty message, as phones ping."""
    return CONTROL in event or event.get("bytes") == b""


def cost_of(event: Mapping[str, Any]) -> float:
    """Returns the cost of a frame without its watches: one, and one for 1,024 bytes of it."""
    return 1.0 + len(event.get("text") or event.get("bytes") or "") / 1024
