"""The ranges that one socket watches."""

from ws_edge.authorization import check_key
from ws_edge.dialects.frames import CancelRangeRequest, RangeDialect, WatchRangeRequest
from ws_edge.errors import RequestError
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.sockets.watched import Watched
from ws_edge.states import Position, RangeKey
from ws_edge.stores import find


class SessionRanges(Watched[RangeKey, RangeSubscription]):
    """A RangeSubscriber for all ranges of a session; only a dialect that has range frames brings requests for them."""

    __slots__ = ()

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
        check_key(self._consumer, rule, key)
        self._make_room(key, self._around.limits.max_ranges, "ranges")
        interval = self._around.limits.interval(request.interval_ms)
        sees_all = rule.shows_all(self._consumer)
        self._subscriptions[key] = self._around.hub.watch_range(
            self, self._consumer, key, request.after, interval, sees_all, request.reference
        )
        self._desk.count()

    def cancel(self, request: CancelRangeRequest) -> None:
        """Ends the watching of a range; one that is not watched is confirmed alike."""
        key = self._around.limits.in_force(request.key)
        self._drop(key)
        self._writer.reply(self._frames.cancelled(CancelRangeRequest(key, request.reference)))

    def range_started(self, subscription: RangeSubscription, recovered: bool) -> None:
        """See RangeSubscriber."""
        self._writer.reply(self._frames.started(subscription, recovered))

    def range_changed(self, subscription: RangeSubscription) -> None:
        """See RangeSubscriber."""
        self._writer.put_range(subscription)

    def range_refused(self, subscription: RangeSubscription, error: RequestError) -> None:
        """See RangeSubscriber."""
        self._refuse(subscription.watch.key, error, subscription.reference)

    def range_delayed(self, subscription: RangeSubscription) -> None:
        """See RangeSubscriber."""
        self._announce_delay(subscription.watch.key, subscription.reference)

    @property
    def _frames(self) -> RangeDialect:
        frames = self._dialect.ranges
        assert frames is not None  # noqa: S101  requests for ranges come from such a dialect
        return frames
