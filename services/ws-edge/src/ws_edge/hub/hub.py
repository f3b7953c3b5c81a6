"""Turns the subscriptions of all sockets into one timed read per key, and each answer into what each one is told.

The hub does no input or output and never waits: the poller asks it what is due and tells it the answers, and sessions
are handed versions, which they put into their outbox. Times are seconds of one monotonic clock.
"""

from collections import deque
from collections.abc import Callable

from ws_edge.authorization import Consumer
from ws_edge.errors import ForbiddenError
from ws_edge.hub.interest import AnySubscription, AnyWatch
from ws_edge.hub.range_subscription import RangeSubscriber, RangeSubscription
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.hub.subscription import Subscriber, Subscription, Watch
from ws_edge.hub.timing_wheel import TimingWheel
from ws_edge.querying.questions import RangeAnswer
from ws_edge.states import AnyKey, Position, RangeKey, StoreKey, Version

RETRY_S = 0.1
"""After how long a key that nobody answered for is asked for again, when its subscribers set no longer time."""


class Hub:
    """All watched keys. `on_fresh` is called when a key must be asked for at once.

    `on_live` is called with a key that somebody wants to hear of as soon as it changes: whoever takes it tells every
    answer without being asked again, until `release` or `failed`.
    """

    def __init__(self, clock: Callable[[], float], quantum: float, patience: float) -> None:
        """`quantum` is how finely time is cut; `patience` how long a first answer may take before it is called late."""
        now = clock()
        self._clock = clock
        self._patience = patience
        self._watches: dict[AnyKey, AnyWatch] = {}
        self._fresh: list[AnyWatch] = []
        self._polls: TimingWheel[AnyWatch] = TimingWheel(quantum, now)
        self._deliveries: TimingWheel[AnySubscription] = TimingWheel(quantum, now)
        self._unanswered: deque[tuple[float, AnySubscription]] = deque()
        self.on_fresh: Callable[[], None] = lambda: None
        self.on_live: Callable[[AnyWatch], None] = lambda _: None
        self.subscriptions = 0

    @property
    def unique_keys(self) -> int:
        """The number of keys and ranges that are watched."""
        return len(self._watches)

    def subscribe(
        self,
        subscriber: Subscriber,
        consumer: Consumer,
        key: StoreKey,
        after: Position | None,
        interval: float,
        reference: str = "",
    ) -> Subscription:
        """Starts a subscription; the subscriber hears of it at once when the key is known well enough, else later."""
        watch = self._watches.get(key)
        if not isinstance(watch, Watch):
            watch = self._watches[key] = Watch(key, self._clock())
        subscription = Subscription(watch, subscriber, consumer, after, interval, reference)
        self._join(subscription)
        return subscription

    def watch_range(
        self,
        subscriber: RangeSubscriber,
        consumer: Consumer,
        key: RangeKey,
        after: Position | None,
        interval: float,
        sees_all: bool,
        reference: str = "",
    ) -> RangeSubscription:
        """As `subscribe`, for a range; `sees_all` says that the consumer may see whatever row is in it."""
        watch = self._watches.get(key)
        if not isinstance(watch, RangeWatch):
            watch = self._watches[key] = RangeWatch(key, self._clock())
        subscription = RangeSubscription(watch, subscriber, consumer, after, interval, sees_all, reference)
        self._join(subscription)
        return subscription

    def unsubscribe(self, subscription: AnySubscription) -> None:
        """Ends a subscription; one that has ended already is left alone."""
        if not subscription.active:
            return
        subscription.active = False
        self.subscriptions -= 1
        watch = subscription.watch
        watch.remove(subscription)
        if not watch.subscriptions:
            watch.slot = -1
            del self._watches[watch.key]

    def take_due(self) -> list[AnyWatch]:
        """Returns the keys to ask for now. Each stays out until it is answered, unchanged or failed."""
        now = self._clock()
        due = [watch for watch in self._fresh if watch.subscriptions]
        self._fresh.clear()
        for slot, watch in self._polls.take(now):
            if watch.slot == slot:
                watch.slot = -1
                watch.in_flight = True
                watch.due = slot * self._polls.quantum
                due.append(watch)
        for watch in due:
            if watch.waiting:
                watch.waiting = dict.fromkeys(watch.waiting, True)
        return due

    def advance(self) -> None:
        """Tells the subscribers whose interval is over, and those whose first answer is late."""
        now = self._clock()
        for _, subscription in self._deliveries.take(now):
            subscription.queued = False
            if subscription.active:
                self._offer(subscription, now)
        while self._unanswered and self._unanswered[0][0] <= now:
            _, subscription = self._unanswered.popleft()
            if subscription.active and not subscription.started:
                subscription.delay()

    def answered(self, watch: AnyWatch, answer: Version | RangeAnswer) -> None:
        """A replica has answered with what the key holds, or what has changed in the range."""
        now = self._clock()
        if watch.accept(answer):
            for subscription in tuple(watch.subscriptions):
                if subscription.started:
                    self._offer(subscription, now)
        self._go_on(watch, now)

    def unchanged(self, watch: AnyWatch) -> None:
        """A replica has nothing newer than what is known."""
        watch.confirm()
        self._go_on(watch, self._clock())

    def failed(self, watch: AnyWatch) -> None:
        """Nobody has answered; the key is asked for again when it is due."""
        watch.live = False
        self._schedule(watch, self._clock(), failed=True)

    def release(self, watch: AnyWatch) -> None:
        """A live key is no longer held in a long poll where it was; it is scheduled anew."""
        watch.live = False
        self._schedule(watch, self._clock())

    def next_at(self) -> float:
        """When `take_due` and `advance` are to be called next, unless `on_fresh` is called before."""
        return self._polls.next_at(self._clock())

    def _join(self, subscription: AnySubscription) -> None:
        now = self._clock()
        watch = subscription.watch
        watch.add(subscription)
        self.subscriptions += 1
        if watch.suffices(subscription) and (watch.live or now - watch.confirmed_at <= subscription.interval):
            self._hasten(watch)
            self._start(subscription, now)
        else:
            watch.waiting[subscription] = False
            self._unanswered.append((now + self._patience, subscription))
            self._ask_at_once(watch)

    def _go_on(self, watch: AnyWatch, now: float) -> None:
        watch.confirmed_at = now
        if watch.is_known:
            for subscription in [each for each, asked in watch.waiting.items() if asked or watch.suffices(each)]:
                del watch.waiting[subscription]
                self._start(subscription, now)
        if watch.is_known and watch.waiting:
            watch.in_flight = False  # what was asked for left out those who came meanwhile
            self._ask_at_once(watch)
        else:
            self._schedule(watch, now)

    def _start(self, subscription: AnySubscription, now: float) -> None:
        if not self._is_refused(subscription):
            subscription.started = True
            subscription.begin()
            self._offer(subscription, now, snapshot=True)

    def _offer(self, subscription: AnySubscription, now: float, snapshot: bool = False) -> None:
        if self._is_refused(subscription) or subscription.queued or not subscription.has_news:
            return
        if now + self._deliveries.quantum < subscription.next_at:
            subscription.queued = True
            self._deliveries.add(subscription, subscription.next_at)
            return
        subscription.next_at = max(subscription.next_at, now) + subscription.interval
        subscription.deliver(snapshot)

    def _is_refused(self, subscription: AnySubscription) -> bool:
        try:
            subscription.check()
        except ForbiddenError as error:
            error.reference = subscription.reference
            self.unsubscribe(subscription)
            subscription.refuse(error)
            return True
        return False

    def _ask_at_once(self, watch: AnyWatch) -> None:
        if watch.live or not watch.in_flight:
            watch.live = False
            watch.in_flight = True
            watch.slot = -1
            watch.due = self._clock()
            self._fresh.append(watch)
            self.on_fresh()

    def _hasten(self, watch: AnyWatch) -> None:
        """Brings the next poll forward when a faster interval has been asked for."""
        if watch.slot >= 0 and watch.due + watch.interval < watch.slot * self._polls.quantum:
            watch.slot = self._polls.add(watch, watch.due + watch.interval)

    def _schedule(self, watch: AnyWatch, now: float, failed: bool = False) -> None:
        if watch.live:
            return
        watch.in_flight = False
        if watch.is_live and not failed:
            watch.in_flight = watch.live = True
            self.on_live(watch)
        elif watch.subscriptions:
            # Ticks that passed while the key was asked for are skipped, not made up for.
            interval = watch.interval or RETRY_S
            missed = max(0.0, now - watch.due) // interval
            watch.slot = self._polls.add(watch, watch.due + (missed + 1) * interval)
