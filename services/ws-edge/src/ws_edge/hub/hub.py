"""Turns the subscriptions of all sockets into one read per key, and each result into the news of each subscriber.

The hub does no input or output and never waits: the poller asks it for due reads and hands it the results, and it
hands subscribers their news. Times are seconds of one monotonic clock.
"""

from collections.abc import Callable
from math import ceil
from typing import Generic, TypeVar

from ws_edge.errors import ForbiddenError, RequestError, RowTooLargeError
from ws_edge.hub.member_changes import Backlog
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.hub.watch import KeyWatch, Subscriber, Subscription, SubscriptionStatus, Watch, WatchStatus
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import AnyKey, KeyState, Place, Position, RangeKey
from ws_edge.upstream.queries import Progress, RangeResult

T = TypeVar("T")

RETRY_S = 0.1
"""After how long a key that nobody answered for is asked for again, when its subscribers set no longer time."""

# Looking up a member of an enum takes as long as a good part of a delivery.
WAITING, CURRENT, QUEUED = SubscriptionStatus.WAITING, SubscriptionStatus.CURRENT, SubscriptionStatus.QUEUED


class TimingWheel(Generic[T]):
    """Items by the slot of time in which they are due, each once, at a cost of the due items alone."""

    def __init__(self, tick: float, now: float) -> None:
        """`tick` is the length of a slot in seconds; times are those of any monotonic clock."""
        self.tick = tick
        self._next = int(now / tick)
        self._slots: dict[int, dict[T, None]] = {}
        self._slot_of: dict[T, int] = {}

    def add(self, item: T, at: float) -> None:
        """Puts the item, out of the slot where it is, into the first that starts at `at` or later and was not taken."""
        self.discard(item)
        # A time that is a whole number of slots may be a hair above it as a float.
        slot = self._slot_of[item] = max(ceil(at / self.tick - 1e-6), self._next)
        self._slots.setdefault(slot, {})[item] = None

    def discard(self, item: T) -> bool:
        """Takes the item out, so that nothing of it is kept until it would have been due; returns whether it was in."""
        slot = self._slot_of.pop(item, None)
        if slot is not None:
            del self._slots[slot][item]
        return slot is not None

    def due_at(self, item: T) -> float:
        """When the slot of the item starts."""
        return self._slot_of[item] * self.tick

    def take(self, now: float) -> list[tuple[int, T]]:
        """Takes out all items of started slots, with their slots, in the order in which they are due."""
        last = int(now / self.tick + 1e-6)
        first, self._next = self._next, last + 1
        # After a long pause there may be far more empty slots than filled ones.
        slots = range(first, last + 1) if last - first < len(self._slots) else sorted(self._slots)
        due = [(slot, item) for slot in slots if slot <= last for item in self._slots.pop(slot, ())]
        for _, item in due:
            del self._slot_of[item]
        return due

    def next_at(self, now: float) -> float:
        """When the slot after the one of `now` starts."""
        return (int(now / self.tick + 1e-6) + 1) * self.tick


class Hub:
    """All keys and ranges that are watched."""

    def __init__(
        self,
        clock: Callable[[], float],
        tick: float,
        first_answer_timeout: float,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`tick` is the resolution of times; `wake` is called when `take_due` is to be called before `next_at`."""
        now = clock()
        self._clock = clock
        self._first_answer_timeout = first_answer_timeout
        self._watches: dict[AnyKey, Watch] = {}
        self._wake = wake
        self._due_now: dict[Watch, None] = {}
        self._reads: TimingWheel[Watch] = TimingWheel(tick, now)
        self._timers: TimingWheel[Subscription] = TimingWheel(tick, now)
        """When deliveries are due again, and when first answers are late."""
        self.subscriptions = 0

    @property
    def unique_keys(self) -> int:
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
        repeat: bool = False,
        place: Place | None = None,
    ) -> Subscription:
        """Starts a subscription, which begins within the call when the state is fresh enough, else later.

        `repeat` is for keys with an interval other than 0 outside of queries; `place` says where in a query it is.
        """
        now = self._clock()
        watch = self._watches.get(key)
        if watch is None:
            watch = RangeWatch(key, now) if isinstance(key, RangeKey) else KeyWatch(key, now)
            self._watches[key] = watch
        backlog = Backlog(sees_all) if isinstance(key, RangeKey) or place is not None else None
        subscription = Subscription(watch, subscriber, consumer, after, interval, reference, backlog, repeat, place)
        watch.add(subscription)
        self.subscriptions += 1
        is_fresh = watch.status is WatchStatus.HELD or now - watch.confirmed_at <= interval
        if is_fresh and watch.can_begin(after):
            due = watch.due + watch.interval
            if watch.status is WatchStatus.SCHEDULED and due < self._reads.due_at(watch):
                self._reads.add(watch, due)
            self._begin(subscription, now)
        else:
            watch.waiting[subscription] = False
            if watch.failure is None:
                self._timers.add(subscription, now + self._first_answer_timeout)
            else:
                subscriber.delayed(subscription)
            if watch.status is not WatchStatus.ASKED:
                self._ask_now(watch, now)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription; does nothing when it has ended."""
        if subscription.is_ended:
            return
        subscription.end()
        self._timers.discard(subscription)
        self.subscriptions -= 1
        watch = subscription.watch
        watch.remove(subscription)
        if not watch.subscriptions:
            watch.status = WatchStatus.ENDED
            self._reads.discard(watch)
            del self._watches[watch.key]

    def take_due(self) -> list[Watch]:
        """Returns watches due for a timed read (ASKED) or long poll (HELD), each once until it is answered for."""
        due = [watch for watch in self._due_now if watch.status in (WatchStatus.ASKED, WatchStatus.HELD)]
        self._due_now.clear()
        for slot, watch in self._reads.take(self._clock()):
            watch.status = WatchStatus.ASKED
            watch.due = slot * self._reads.tick
            due.append(watch)
        for watch in due:
            if watch.waiting:
                watch.waiting = dict.fromkeys(watch.waiting, True)
        return due

    def advance(self) -> None:
        """Delivers to subscribers after their interval, and tells those with a late first answer."""
        now = self._clock()
        for _, subscription in self._timers.take(now):
            if subscription.status is QUEUED:
                subscription.status = CURRENT
                self._offer(subscription, now)  # which queues it again if its interval is not over
            elif subscription.status is WAITING:
                subscription.subscriber.delayed(subscription)

    def answered(self, watch: Watch, result: KeyState | RangeResult) -> None:
        """Takes a replica's answer: the state of the key, or the changes in the range."""
        now = self._clock()
        is_news = watch.accept(result)
        watch.note_lag(result.lag_ms)
        if is_news:
            for subscription in tuple(watch.subscriptions):
                if subscription.status is CURRENT or subscription.status is QUEUED:
                    self._offer(subscription, now)
        self._go_on(watch, now)

    def unchanged(self, watch: Watch, progress: Progress) -> None:
        """Takes a replica's answer that nothing is newer."""
        watch.unchanged(progress.position)
        watch.note_lag(progress.lag_ms)
        self._go_on(watch, self._clock())

    def failed(self, watch: Watch, error: RequestError) -> None:
        """Nobody has answered, or only with an error; the key is read again at its interval.

        Its subscribers are told once it has failed for a while, and at once when its row is too large.
        """
        now = self._clock()
        if watch.failing_since is None:
            watch.failing_since = now
        is_late = now - watch.failing_since >= self._first_answer_timeout
        if watch.failure is None and (is_late or isinstance(error, RowTooLargeError)):
            watch.failure = error
            for subscription in tuple(watch.subscriptions):
                is_new = subscription.status is not WAITING or self._timers.discard(subscription)
                if is_new and not subscription.is_ended:
                    subscription.subscriber.delayed(subscription)
        self._ask_later(watch, now)

    def release(self, watch: Watch) -> None:
        """The long poll that held the watch no longer does; it is scheduled anew."""
        self._ask_again(watch, self._clock())

    def next_at(self) -> float:
        """When `take_due` and `advance` are to be called next, unless `wake` is called before."""
        return self._timers.next_at(self._clock())

    def _go_on(self, watch: Watch, now: float) -> None:
        watch.confirmed_at, watch.failing_since, watch.failure = now, None, None
        for subscription in tuple(watch.repeating):
            if subscription.status is CURRENT:
                self._offer(subscription, now)
        if watch.waiting and watch.position is not None:
            waiting, watch.waiting = watch.waiting, {}
            for subscription, is_asked in waiting.items():
                is_behind = watch.is_behind(subscription.after)
                if not is_behind and (is_asked or watch.can_begin(subscription.after)):
                    self._begin(subscription, now)
                elif subscription.status is WAITING:
                    # A replica that is behind is asked again at the interval of the watch, not at once.
                    watch.waiting[subscription] = is_behind
        if watch.position is not None and not all(watch.waiting.values()):
            # What was asked for left out those who came meanwhile.
            self._ask_now(watch, now)
        elif watch.status is not WatchStatus.HELD:
            self._ask_again(watch, now)

    def _ask_now(self, watch: Watch, now: float) -> None:
        watch.due = now
        self._put_first(watch, WatchStatus.ASKED)

    def _ask_again(self, watch: Watch, now: float) -> None:
        """Holds the watch in a long poll when its interval is 0, and schedules its next timed read otherwise."""
        if watch.interval == 0 and watch.status is not WatchStatus.ENDED:
            self._put_first(watch, WatchStatus.HELD)
        else:
            self._ask_later(watch, now)

    def _ask_later(self, watch: Watch, now: float) -> None:
        if watch.status is not WatchStatus.ENDED:
            # Ticks that passed while the key was asked for are skipped, not made up for.
            interval = watch.pause(now) or RETRY_S
            missed = max(0.0, now - watch.due) // interval
            watch.status = WatchStatus.SCHEDULED
            self._reads.add(watch, watch.due + (missed + 1) * interval)

    def _put_first(self, watch: Watch, status: WatchStatus) -> None:
        watch.status = status
        self._reads.discard(watch)
        self._due_now[watch] = None
        self._wake()

    def _begin(self, subscription: Subscription, now: float) -> None:
        if subscription.status is WAITING and not self._is_refused(subscription):
            subscription.status = CURRENT
            recovered = subscription.watch.begin(subscription)
            subscription.subscriber.started(subscription, recovered)
            if subscription.repeat and not subscription.watch.has_news_for(subscription):
                subscription.next_at = now + subscription.interval  # as if it had just been told what it has
            self._offer(subscription, now, snapshot=True)

    def _offer(self, subscription: Subscription, now: float, snapshot: bool = False) -> None:
        watch = subscription.watch
        if subscription.is_ended:  # by its subscriber, when it was told of its start
            return
        if self._is_refused(subscription) or subscription.status is QUEUED:
            return
        has_news = watch.has_news_for(subscription)
        if not has_news and not watch.repeats(subscription):
            return
        if now + self._timers.tick < subscription.next_at:
            self._queue(subscription)
            return
        subscription.next_at = max(subscription.next_at, now) + subscription.interval
        watch.deliver(subscription, snapshot or not has_news)
        if subscription.repeat and not subscription.is_ended:
            self._queue(subscription)

    def _queue(self, subscription: Subscription) -> None:
        subscription.status = QUEUED
        self._timers.add(subscription, subscription.next_at)

    def _is_refused(self, subscription: Subscription) -> bool:
        try:
            subscription.watch.check(subscription.consumer)
        except ForbiddenError as error:
            error.reference = subscription.reference
            subscriber = subscription.subscriber
            self.unsubscribe(subscription)
            subscriber.refused(subscription, error)
            return True
        return False
