"""The ranges that one socket watches."""

from ws_edge.access.quotas import Share
from ws_edge.authorization import Consumer, check_key
from ws_edge.dialects.frames import CancelRangeRequest, Dialect, RangeDialect, WatchRangeRequest
from ws_edge.errors import RequestError, TooManySubscriptionsError, UnavailableError
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.sockets.desk import Desk
from ws_edge.sockets.socket_writer import SocketWriter
from ws_edge.sockets.surroundings import Surroundings
from ws_edge.states import Position, RangeKey
from ws_edge.stores import find


class SessionRanges:
    """A RangeSubscriber for all ranges of a session; only a dialect that has range frames brings requests for them."""

    __slots__ = ("_around", "_consumer", "_desk", "_dialect", "_share", "_subscriptions", "_writer")

    def __init__(
        self, around: Surroundings, consumer: Consumer, dialect: Dialect, share: Share, writer: SocketWriter, desk: Desk
    ) -> None:
        self._around = around
        self._consumer = consumer
        self._dialect = dialect
        self._share = share
        self._writer = writer
        self._desk = desk
        self._subscriptions: dict[RangeKey, RangeSubscription] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, key: RangeKey) -> bool:
        return key in self._subscriptions

    def reached(self, key: RangeKey) -> Position | None:
        """Through which the client has been sent everything of the range; None when that is nothing, or not all."""
        subscription = self._subscriptions.get(key)
        if subscription is None:
            return None
        return subscription.through if subscription.started else subscription.position

    def watch(self, request: WatchRangeRequest) -> None:
        """Starts watching a range, or changes how it is watched. Raises RequestError."""
        key = self._around.limits.in_force(request.key)
        rule = find(self._around.stores, key.store).rule
        held = self._subscriptions.get(key)
        check_key(self._consumer, rule, key)
        if held is None:
            self._check_room()
        else:
            self._around.hub.unsubscribe(held)
            self._writer.withdraw_range(key)
        interval = self._around.limits.interval(request.interval_ms)
        sees_all = rule.shows_all(self._consumer)
        self._subscriptions[key] = self._around.hub.watch_range(
            self, self._consumer, key, request.after, interval, sees_all, request.reference
        )
        self._desk.count()

    def cancel(self, request: CancelRangeRequest) -> None:
        """Ends the watching of a range; one that is not watched is confirmed alike."""
        key = self._around.limits.in_force(request.key)
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            self._around.hub.unsubscribe(subscription)
            self._desk.count()
        self._writer.withdraw_range(key)
        self._writer.reply(self._frames.cancelled(CancelRangeRequest(key, request.reference)))

    def end_all(self) -> None:
        """Ends the watching of all ranges."""
        for subscription in self._subscriptions.values():
            self._around.hub.unsubscribe(subscription)
        self._subscriptions.clear()

    def range_started(self, subscription: RangeSubscription, recovered: bool) -> None:
        """See RangeSubscriber."""
        self._writer.reply(self._frames.started(subscription, recovered))

    def range_changed(self, subscription: RangeSubscription) -> None:
        """See RangeSubscriber."""
        self._writer.put_range(subscription)

    def range_refused(self, subscription: RangeSubscription, error: RequestError) -> None:
        """See RangeSubscriber."""
        self._subscriptions.pop(subscription.watch.key, None)
        self._writer.withdraw_range(subscription.watch.key)
        self._desk.count()
        self._desk.fail(error, subscription.reference)

    def range_delayed(self, subscription: RangeSubscription) -> None:
        """See RangeSubscriber."""
        text = f"{subscription.watch.key} cannot be looked up now: keep the socket, the answer follows when it can be"
        self._desk.fail(UnavailableError(text), subscription.reference)

    @property
    def _frames(self) -> RangeDialect:
        frames = self._dialect.ranges
        assert frames is not None  # noqa: S101  requests for ranges come from such a dialect
        return frames

    def _check_room(self) -> None:
        self._share.check_subscription()
        limit = self._around.limits.max_ranges
        if len(self._subscriptions) >= limit:
            raise TooManySubscriptionsError(f"a socket may watch {limit} ranges: cancel some, or open another socket")
