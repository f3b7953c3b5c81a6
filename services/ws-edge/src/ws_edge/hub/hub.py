"""Turns the subscriptions of all sockets into one read per key, and each result into what each subscriber lacks.

The hub does no input or output and never waits: the poller asks it what is due and hands it the results, and it hands
subscribers what is new to them. Times are seconds of one monotonic clock.
"""

from collections import deque
from collections.abc import Callable

from ws_edge.authorization import Consumer
from ws_edge.errors import ForbiddenError
from ws_edge.hub.content import KeyContent
from ws_edge.hub.range_content import RangeContent
from ws_edge.hub.schedule import PollSchedule, TimingWheel
from ws_edge.hub.watch import Subscriber, Subscription, SubscriptionStatus, Watch, WatchStatus
from ws_edge.states import AnyKey, KeyState, Position, RangeKey
from ws_edge.upstream.queries import RangeResult

# Looking up a member of an enum takes as long as a good part of a delivery.
WAITING, CURRENT, QUEUED = SubscriptionStatus.WAITING, SubscriptionStatus.CURRENT, SubscriptionStatus.QUEUED


class Hub:
    """All keys and ranges that are watched."""

    def __init__(
        self,
        clock: Callable[[], float],
        tick: float,
        first_answer_timeout: float,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`tick` is the resolution of times, and `first_answer_timeout` when a first answer is late, both in seconds.

        `wake` is called when `take_due` is to be called before `next_at`.
        """
        now = clock()
        self._clock = clock
        self._first_answer_timeout = first_answer_timeout
        self._watches: dict[AnyKey, Watch] = {}
        self._schedule = PollSchedule(tick, now, wake)
        self._deliveries: TimingWheel[Subscription] = TimingWheel(tick, now)
        self._unanswered: deque[tuple[float, Subscription]] = deque()
        self.subscriptions = 0

    @property
    def unique_keys(self) -> int:
        """The number of keys and ranges that are watched."""
        return len(self._watches)

    def subscribe(
        self,
        subscriber: Subscriber,
        consumer: Consumer,
        key: AnyKey,
        after: Position | None,
        interval: float,
        reference: str = "",
        sees_all: bool = False,
    ) -> Subscription:
        """Starts a subscription; it begins within the call when what is known is fresh enough, else later.

        `sees_all`: the consumer may see whatever row is in the range, or has ever been in it.
        """
        now = self._clock()
        watch = self._watches.get(key)
        if watch is None:
            content = RangeContent(key) if isinstance(key, RangeKey) else KeyContent()
            watch = self._watches[key] = Watch(key, content, now)
        subscription = Subscription(watch, subscriber, consumer, after, interval, reference, sees_all)
        watch.add(subscription)
        self.subscriptions += 1
        if watch.can_begin(subscription, now):
            self._schedule.hasten(watch)
            self._begin(subscription, now)
        else:
            watch.waiting[subscription] = False
            self._unanswered.append((now + self._first_answer_timeout, subscription))
            if watch.status is not WatchStatus.ASKED:
                self._schedule.ask_now(watch, now)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription; does nothing when it has ended."""
        if subscription.is_ended:
            return
        subscription.end()
        self.subscriptions -= 1
        watch = subscription.watch
        watch.remove(subscription)
        if not watch.subscriptions:
            watch.status = WatchStatus.ENDED
            del self._watches[watch.key]

    def take_due(self) -> list[Watch]:
        """Returns what to read now: by a timed read when its status is ASKED, by long poll when it is HELD.

        Each is returned once, until the poller says what came of it.
        """
        due = self._schedule.take(self._clock())
        for watch in due:
            if watch.waiting:
                watch.waiting = dict.fromkeys(watch.waiting, True)
        return due

    def advance(self) -> None:
        """Delivers to the subscribers whose interval is over, and tells those whose first answer is late."""
        now = self._clock()
        for _, subscription in self._deliveries.take(now):
            if subscription.status is QUEUED:
                subscription.status = CURRENT
                self._offer(subscription, now)
        while self._unanswered and self._unanswered[0][0] <= now:
            _, subscription = self._unanswered.popleft()
            if subscription.status is WAITING:
                subscription.subscriber.delayed(subscription)

    def answered(self, watch: Watch, result: KeyState | RangeResult) -> None:
        """A replica has answered with what the key holds, or what has changed in the range."""
        now = self._clock()
        if watch.content.accept(result, watch.subscriptions):
            for subscription in tuple(watch.subscriptions):
                if subscription.status is CURRENT or subscription.status is QUEUED:
                    self._offer(subscription, now)
        self._go_on(watch, now)

    def unchanged(self, watch: Watch, position: Position | None = None) -> None:
        """A replica has nothing newer than what is known; `position` is how far it has looked, if it says so."""
        watch.content.unchanged(position)
        self._go_on(watch, self._clock())

    def failed(self, watch: Watch) -> None:
        """Nobody has answered; the key is read again at its interval."""
        self._schedule.ask_later(watch, self._clock())

    def release(self, watch: Watch) -> None:
        """The long poll that held the watch no longer does; it is scheduled anew."""
        self._schedule.ask_again(watch, self._clock())

    def next_at(self) -> float:
        """When `take_due` and `advance` are to be called next, unless `wake` is called before."""
        return self._deliveries.next_at(self._clock())

    def _go_on(self, watch: Watch, now: float) -> None:
        watch.confirmed_at = now
        if watch.waiting and watch.content.position is not None:
            waiting, watch.waiting = watch.waiting, {}
            for subscription, is_asked in waiting.items():
                if is_asked or watch.content.can_begin(subscription.after):
                    self._begin(subscription, now)
                elif subscription.status is WAITING:
                    watch.waiting[subscription] = False
        if watch.waiting and watch.content.position is not None:
            # What was asked for left out those who came meanwhile.
            self._schedule.ask_now(watch, now)
        elif watch.status is not WatchStatus.HELD:
            self._schedule.ask_again(watch, now)

    def _begin(self, subscription: Subscription, now: float) -> None:
        if subscription.status is WAITING and not self._is_refused(subscription):
            subscription.status = CURRENT
            recovered = subscription.watch.content.begin(subscription)
            subscription.subscriber.started(subscription, recovered)
            self._offer(subscription, now, snapshot=True)

    def _offer(self, subscription: Subscription, now: float, snapshot: bool = False) -> None:
        content = subscription.watch.content
        if self._is_refused(subscription) or subscription.status is QUEUED or not content.has_news_for(subscription):
            return
        if now + self._deliveries.tick < subscription.next_at:
            subscription.status = QUEUED
            self._deliveries.add(subscription, subscription.next_at)
            return
        subscription.next_at = max(subscription.next_at, now) + subscription.interval
        content.deliver(subscription, snapshot)

    def _is_refused(self, subscription: Subscription) -> bool:
        try:
            subscription.watch.content.check(subscription.consumer)
        except ForbiddenError as error:
            error.reference = subscription.reference
            subscriber = subscription.subscriber
            self.unsubscribe(subscription)
            subscriber.refused(subscription, error)
            return True
        return False
