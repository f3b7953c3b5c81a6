"""What one socket watches."""

from dataclasses import dataclass, field

from typing_extensions import override

from ws_edge.auth.quotas import QuotaReservation
from ws_edge.authorization import Consumer, check_key
from ws_edge.codec.frames import CancelRequest, FrameCodec, WatchRequest
from ws_edge.errors import CLOSE_SLOW, EdgeError, RequestError, TooManySubscriptionsError, UnavailableError
from ws_edge.hub.watch import Subscriber, Subscription
from ws_edge.session.context import SessionContext
from ws_edge.session.writer import SocketWriter
from ws_edge.states import AnyKey, KeyState, Position, RangeKey
from ws_edge.stores import find


@dataclass(slots=True, eq=False)
class SessionSubscriptions(Subscriber):
    """The subscriptions of one session: grants them, and hands the writer what they bring.

    It knows nothing of the session, so that both are freed as soon as the socket is closed.
    """

    context: SessionContext
    consumer: Consumer
    codec: FrameCodec
    reservation: QuotaReservation
    writer: SocketWriter
    _keys: dict[AnyKey, Subscription] = field(default_factory=dict, init=False)
    _ranges: dict[AnyKey, Subscription] = field(default_factory=dict, init=False)

    def act(self, request: WatchRequest | CancelRequest) -> None:
        """Starts, changes or ends a subscription, unless the session has ended; the client is told of a failure."""
        if self.writer.end_code is not None:
            return
        try:
            if isinstance(request, WatchRequest):
                self._watch(request)
            else:
                key = self.context.limits.granted(request.key)
                self._drop(key)
                self.writer.reply(self.codec.cancelled(key, request.reference))  # also when it was not watched
        except RequestError as error:
            self.fail(error, request.reference)

    def fail(self, error: EdgeError, reference: str) -> None:
        """Tells the client why a request failed."""
        self.context.metrics.errors.labels(error.code).inc()
        self.writer.reply(self.codec.failed(error, reference))

    def end(self, code: int, reason: str) -> None:
        """Ends the session: what is unsent is dropped, and the socket is closed. Only the first call counts."""
        if self.writer.end_code is None:
            self.close()
            self.writer.end(code, reason)

    def close(self) -> None:
        """Ends all subscriptions."""
        for subscriptions in (self._keys, self._ranges):
            for subscription in subscriptions.values():
                self.context.hub.unsubscribe(subscription)
            subscriptions.clear()
        self._count()

    def watches(self, key: AnyKey) -> bool:
        """Whether the key or range is watched."""
        return key in self._like(key)

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
            self.writer.reply(reply)

    @override
    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        if state is None:
            self.writer.put_range(subscription)
            return
        self.writer.put(state, snapshot)
        limit = self.context.limits.max_outbox_bytes
        if self.writer.outbox.size > limit:
            self.end(CLOSE_SLOW, f"more than {limit} bytes wait for you: read faster, or watch less on a socket")

    @override
    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        self._drop(subscription.watch.key)
        self.fail(error, subscription.reference)

    @override
    def delayed(self, subscription: Subscription, /) -> None:
        text = f"{subscription.watch.key} cannot be looked up now: keep the socket, the answer follows when it can be"
        self.fail(UnavailableError(text), subscription.reference)

    def _watch(self, request: WatchRequest) -> None:
        context, key = self.context, self.context.limits.granted(request.key)
        rule = find(context.stores, key.store).rule
        check_key(self.consumer, rule, key)
        self._make_room(key)
        interval = context.limits.interval(request.interval_ms)
        sees_all = rule.shows_all(self.consumer)
        subscription = context.hub.subscribe(
            self, self.consumer, key, request.after, interval, request.reference, sees_all
        )
        if not subscription.is_ended:
            self._like(key)[key] = subscription
            self._count()

    def _make_room(self, key: AnyKey) -> None:
        """Ends the subscription that is to be replaced; raises TooManySubscriptionsError when one more is too many."""
        like = self._like(key)
        replaced = like.pop(key, None)
        if replaced is not None:
            self.context.hub.unsubscribe(replaced)
            self.writer.outbox.withdraw(key)
            return
        self.reservation.check_subscription()
        limits = self.context.limits
        limit, kind = (limits.max_subscriptions, "keys") if like is self._keys else (limits.max_ranges, "ranges")
        if len(like) >= limit:
            raise TooManySubscriptionsError(f"a socket may watch {limit} {kind}: cancel some, or open another socket")

    def _drop(self, key: AnyKey) -> None:
        """Ends the subscription, if there is one, and forgets what is unsent of it."""
        subscription = self._like(key).pop(key, None)
        if subscription is not None:
            self.context.hub.unsubscribe(subscription)
        self._count()
        self.writer.outbox.withdraw(key)

    def _like(self, key: AnyKey) -> dict[AnyKey, Subscription]:
        """The subscriptions of the same kind, which have a limit of their own."""
        return self._ranges if isinstance(key, RangeKey) else self._keys

    def _count(self) -> None:
        self.reservation.hold(len(self._keys) + len(self._ranges))
