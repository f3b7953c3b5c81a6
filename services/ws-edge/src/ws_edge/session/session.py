"""One open socket: who is at its other end, the keys that it watches, its requests, and when it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from ws_edge.auth.expiry import ExpiryTimer, expiry_of
from ws_edge.auth.gateway import Caller, Tickets
from ws_edge.auth.quotas import QuotaReservation
from ws_edge.codec.frames import (
    BeginRequest,
    CancelQueryRequest,
    CancelRequest,
    FrameCodec,
    Held,
    QueryRequest,
    RefreshRequest,
    Reply,
    WatchRequest,
)
from ws_edge.errors import (
    BY_PROTOCOL,
    CLOSE_EXPIRED,
    CLOSE_RESTART,
    CLOSE_SLOW,
    CONTROL,
    MalformedFrameError,
    RequestError,
    RowTooLargeError,
    TooManySubscriptionsError,
    UnavailableError,
)
from ws_edge.hub.hub import Hub
from ws_edge.hub.watch import Subscriber, Subscription, Watch
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import check_key
from ws_edge.model.query_specs import QuerySpec, Subject, check_rights, steps_of
from ws_edge.model.states import AnyKey, KeyState, Position, RangeKey, rows_of
from ws_edge.model.stores import Stores, find
from ws_edge.session.live_query import LiveQuery
from ws_edge.session.writer import Send, SocketWriter
from ws_edge.settings import Settings

if TYPE_CHECKING:
    from ws_edge.session.channel_feed import ChannelFeed

THROTTLE_STEP_S = 1.0
"""How often a socket that is not read looks whether it was ended."""

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


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
        """Returns the key as it is watched, and named in frames: a range gets the limit that is granted."""
        if not isinstance(key, RangeKey):
            return key
        return key._replace(limit=min(key.limit or self.settings.page_size, self.settings.max_members))


@dataclass(slots=True, eq=False)
class Session(Subscriber):
    """One socket: grants its subscriptions, and hands the writer their changes.

    Objects that end a session refer to it, and are known to `run` alone, so that it is freed as soon as the socket is
    closed.
    """

    context: SessionContext
    caller: Caller
    """Who is at the other end, with the newest credential that was shown."""
    reservation: QuotaReservation
    codec: FrameCodec
    send: InitVar[Send]
    writer: SocketWriter = field(init=False)
    stalled: bool = field(default=False, init=False)
    """Whether the socket was cut off because its client does not read."""
    throttled_s: float = field(default=0.0, init=False)
    """For how many seconds the socket was not read, because its client had sent more than it may."""
    _keys: dict[AnyKey, Subscription] = field(default_factory=dict, init=False)
    _ranges: dict[AnyKey, Subscription] = field(default_factory=dict, init=False)
    _queries: dict[str, LiveQuery] = field(default_factory=dict, init=False)

    def __post_init__(self, send: Send) -> None:
        context = self.context
        max_frame_bytes = context.settings.max_sent_frame_bytes
        self.writer = SocketWriter(self.codec, send, context.metrics.frames, context.clock, max_frame_bytes)

    async def run(self, receive: Receive, first: WatchRequest | None = None, feed: "ChannelFeed | None" = None) -> int:
        """Serves the socket, and closes the feed of its channel, until it is closed; returns the close code."""
        expiry = ExpiryTimer(self.context.wall_clock, self._expire)
        expiry.renew(self._expires_at())
        try:
            if first is not None:
                self.act(first)
            while (event := await receive())["type"] == "websocket.receive":
                if self.writer.end_code is not None:
                    await self.writer.closed()
                    continue
                await self._throttle(event)
                if not is_ping(event):
                    self._handle(event, expiry, feed)
                await self.writer.catch_up(self.context.settings.max_replies)
            code = int(event.get("code") or 1005)
            if event.get(BY_PROTOCOL):
                self.writer.end_code = code
            return code
        finally:
            expiry.cancel()
            if feed is not None:
                feed.close()
            self._unsubscribe_all()
            self.writer.stop()

    async def _throttle(self, event: Mapping[str, Any]) -> None:
        """Pays for a frame; returns when its budgets owe nothing any more, or the socket ends."""
        wait_s = self.reservation.pay(cost_of(event))
        self.throttled_s += wait_s
        self.context.metrics.throttled_seconds.inc(wait_s)
        while wait_s > 0 and self.writer.end_code is None:
            await asyncio.sleep(min(wait_s, THROTTLE_STEP_S))
            wait_s -= THROTTLE_STEP_S

    def end(self, code: int, reason: str) -> None:
        """Ends the session: drops everything unsent, and closes the socket. Only the first call counts."""
        if self.writer.end_code is None:
            self._unsubscribe_all()
            self.writer.end(code, reason)

    def leave(self, delay_s: float) -> None:
        """Tells the client that the socket closes after the delay, and that it may connect again."""
        self.writer.reply(self.codec.reconnect(round(delay_s * 1000)))

    def _expires_at(self) -> float:
        context = self.context
        return expiry_of(self.caller.credential, context.wall_clock(), context.settings.max_socket_age_s)

    def _expire(self) -> None:
        if self.caller.credential.expires_at is not None:
            self.end(CLOSE_EXPIRED, "your credential has expired: sign in again, then connect")
        elif self.writer.end_code is None:
            self.leave(0.0)
            self.writer.close(CLOSE_RESTART, "this socket is as old as it may be: connect again with your positions")

    def end_watches(self) -> None:
        """Ends all watches, and forgets their unsent changes."""
        self._unsubscribe_all()
        self.writer.outbox.clear()

    def act(self, request: WatchRequest | CancelRequest | QueryRequest | CancelQueryRequest) -> None:
        """Starts, changes or ends a subscription, unless the session has ended; the client is told of a failure."""
        if self.writer.end_code is not None:
            return
        match request:
            case WatchRequest():
                self._watch_or_refuse(self.context.granted(request.key), request)
            case CancelRequest():
                key = self.context.granted(request.key)
                self._drop(key)
                self.reply(self.codec.cancelled(key, request.reference))  # also when it was not watched
            case QueryRequest():
                self._watch_query(request)
            case CancelQueryRequest():
                self._drop_query(request.name)
                self.reply(self.codec.query_cancelled(request.name, request.reference))  # also when there was none

    def watches_any(self, stores: Collection[str]) -> bool:
        """Whether it watches a key, a range or a query of one of the stores."""
        in_queries = chain.from_iterable(query.stores for query in self._queries.values())
        watched = chain((key.store for key in chain(self._keys, self._ranges)), in_queries)
        return any(store in stores for store in watched)

    def watches(self, subject: Subject) -> bool:
        """Whether it watches the key or range, or a query of the name."""
        return subject.name in self._queries if isinstance(subject, QuerySpec) else subject in self._like(subject)

    def held_of(self, spec: QuerySpec) -> Held:
        """Returns the client's position in each range of a query; none when it watches another one by this name."""
        query = self._queries.get(spec.name)
        return query.held if query is not None and query.spec == spec else {}

    def position_of(self, key: AnyKey) -> Position | None:
        """The position up to which the client has been sent everything; None when that is nothing, or not all."""
        subscription = self._like(key).get(key)
        if subscription is None or (subscription.backlog is None and key in self.writer.outbox):
            return None
        return subscription.position

    @override
    def started(self, subscription: Subscription, recovered: bool, /) -> None:
        reply = self.codec.started(subscription, recovered)
        if reply is not None:
            self.reply(reply)

    @override
    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        if state is None:
            self.writer.put_range(subscription)
            return
        self.writer.put(state, snapshot, subscription.reference)
        self._end_if_slow()

    @override
    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        self._drop(subscription.watch.key)
        self.fail(error, subscription.reference)

    @override
    def delayed(self, subscription: Subscription, /) -> None:
        self.tell_delay(subscription.watch, subscription.reference)

    def end_query(self, request: QueryRequest, error: RequestError) -> None:
        """Ends a query, and tells the client why."""
        self._drop_query(request.spec.name)
        self._refuse_query(request, error)

    def check_query_range(self, key: AnyKey) -> None:
        """Raises TooManySubscriptionsError when a query may not watch one more range or key."""
        self.reservation.check_subscription(rows_of(key))
        limit = self.context.settings.max_query_ranges
        if sum(query.ranges for query in self._queries.values()) >= limit:
            text = f"the queries of a socket may watch {limit} ranges: give narrower limits, or open another socket"
            raise TooManySubscriptionsError(text)

    def tell_delay(self, watch: Watch, reference: str) -> None:
        """Tells the client that an answer is late, or that its row is too large."""
        text = f"{watch.key} cannot be looked up now: keep the socket, what is new follows when it can be"
        failure = watch.failure
        self.fail(failure if isinstance(failure, RowTooLargeError) else UnavailableError(text), reference)

    def _handle(self, event: Mapping[str, Any], expiry: ExpiryTimer, feed: "ChannelFeed | None") -> None:
        reference = ""
        try:
            request = self.codec.parse(event)
            reference = request.reference
            if isinstance(request, RefreshRequest):
                credential = self.context.tickets.redeem(request.ticket, self.caller.consumer).credential
                self.caller = replace(self.caller, credential=credential)
                expiry.renew(self._expires_at())
                self.reply(self.codec.authenticated(credential.expires_at, reference))
            elif not isinstance(request, BeginRequest):
                self.act(request)
            elif feed is None:
                text = "begin is for the socket of a channel: connect to /v1/channels/CHANNEL/stream"
                raise MalformedFrameError(text)
            else:
                feed.begin(request)
        except RequestError as error:
            self.fail(error, error.reference or reference)

    def fail(self, error: RequestError, reference: str) -> None:
        self.context.metrics.errors.labels(error.code).inc()
        self.reply(self.codec.failed(error, reference))

    def reply(self, reply: Reply) -> None:
        self.writer.reply(reply)
        self._end_if_slow()  # what a channel adds and removes is answered whether the client reads or not

    def _end_if_slow(self) -> None:
        limit = self.context.settings.max_outbox_bytes
        if self.writer.outbox.size > limit:
            self.end(CLOSE_SLOW, f"more than {limit} bytes wait for you: read faster, or watch less on a socket")

    def _watch_query(self, request: QueryRequest) -> None:
        stores, spec = self.context.stores, request.spec
        try:
            steps = steps_of(spec, stores)
            check_rights(self.caller.consumer, spec.first, steps, stores)
        except RequestError as error:
            self._refuse_query(request, error)
            return
        self._drop_query(spec.name)  # it is replaced
        query = self._queries[spec.name] = LiveQuery(request, steps, self)
        try:
            query.begin(self.context.granted(spec.first))
        except RequestError as error:
            self.end_query(request, error)

    def _refuse_query(self, request: QueryRequest, error: RequestError) -> None:
        name, reference = request.spec.name, request.reference
        self.fail(error, reference)
        if name not in self._queries:
            # Queries of a channel have one reference in common.
            self.reply(self.codec.query_cancelled(name, reference))

    def _drop_query(self, name: str) -> None:
        """Ends a query, if there is one, and forgets its unsent states."""
        query = self._queries.pop(name, None)
        if query is not None:
            query.close()

    def _watch_or_refuse(self, key: AnyKey, request: WatchRequest) -> None:
        try:
            self._watch(key, request)
        except RequestError as error:
            self.fail(error, request.reference)

    def _watch(self, key: AnyKey, request: WatchRequest) -> None:
        context, consumer = self.context, self.caller.consumer
        rule = find(context.stores, key.store).rule
        check_key(consumer, rule, key)
        if self.watches(key):
            self._drop(key)  # it is replaced
        else:
            self.reservation.check_subscription(rows_of(key))
            max_keys, max_ranges = context.settings.max_subscriptions, context.settings.max_ranges
            limit, kind = (max_ranges, "ranges") if isinstance(key, RangeKey) else (max_keys, "keys")
            if len(self._like(key)) >= limit:
                text = f"a socket may watch {limit} {kind}: cancel some, or open another socket"
                raise TooManySubscriptionsError(text)
        interval, sees_all = context.interval(request.interval_ms, key.store), rule.shows_all(consumer)
        subscription = context.hub.subscribe(
            self, consumer, key, request.after, interval, request.reference, sees_all, request.repeat
        )
        if not subscription.is_ended:
            self._like(key)[key] = subscription
            self.count()

    def _drop(self, key: AnyKey) -> None:
        """Ends the subscription, if there is one, and forgets its unsent states."""
        subscription = self._like(key).pop(key, None)
        if subscription is not None:
            self.context.hub.unsubscribe(subscription)
        self.count()
        self.writer.outbox.withdraw(key)

    def _unsubscribe_all(self) -> None:
        for subscriptions in (self._keys, self._ranges):
            for subscription in subscriptions.values():
                self.context.hub.unsubscribe(subscription)
            subscriptions.clear()
        for name in tuple(self._queries):
            self._drop_query(name)
        self.count()

    def _like(self, key: AnyKey) -> dict[AnyKey, Subscription]:
        """The subscriptions of the same kind, which have a limit of their own."""
        return self._ranges if isinstance(key, RangeKey) else self._keys

    def count(self) -> None:
        in_queries = sum(query.rows for query in self._queries.values())
        self.reservation.hold(len(self._keys) + sum(map(rows_of, self._ranges)) + in_queries)


def is_ping(event: Mapping[str, Any]) -> bool:
    """Whether it is a frame that only counts: one of the protocol itself, or an empty message, as phones ping."""
    return CONTROL in event or event.get("bytes") == b""


def cost_of(event: Mapping[str, Any]) -> float:
    """The cost of a frame: one, one more for the request in a message, and one for 1,024 bytes of it."""
    if is_ping(event):
        return 1.0
    return 2.0 + len(event.get("text") or event.get("bytes") or "") / 1024
