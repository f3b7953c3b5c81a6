"""Turns the subscriptions of all sockets into one read per question, and each result into news for each subscription.

The hub does no input or output and never waits: the poller takes due reads and hands over the results, and the hub
tells subscribers that their subscriptions have news. Times are seconds of one monotonic clock.
"""

from collections.abc import Callable

from ws_edge.errors import MalformedFrameError, RequestError, RowTooLargeError
from ws_edge.model.questions import Question
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.subscription import WAITING, Subscriber, Subscription, SubscriptionStatus
from ws_edge.watches.timing_wheel import TimingWheel
from ws_edge.watches.watch import Watch, WatchStatus

RETRY_S = 0.1
"""How long after a failed read a question is asked again, unless the interval of its subscriptions is longer."""

FALSE_TOKEN_S = 30.0
"""A token that is ahead of a replica without a lag for so long is none that an edge has made: all rows are sent.

It is longer than a lag that is not reported."""

CURRENT, QUEUED = SubscriptionStatus.CURRENT, SubscriptionStatus.QUEUED


class Hub:
    """All watched questions."""

    def __init__(self, clock: Callable[[], float], tick: float, wake: Callable[[], None] = lambda: None) -> None:
        """`tick` is the resolution of times. The hub calls `wake` when `take_due` is needed before `next_at`."""
        now = clock()
        self._clock = clock
        self._watches: dict[Question, Watch] = {}
        self._wake = wake
        self._due_now: dict[Watch, None] = {}
        self._reads: TimingWheel[Watch] = TimingWheel(tick, now)
        self._queue: TimingWheel[Subscription] = TimingWheel(tick, now)
        """Subscriptions that wait for their interval."""
        self.subscriptions = 0
        self.skipped = 0
        """How many versions were replaced before a slow subscriber took them, since the start."""

    @property
    def watches(self) -> int:
        return len(self._watches)

    def subscribe(self, subscriber: Subscriber, question: Question, options: WatchOptions) -> Subscription:
        """Starts a subscription, which begins within the call if the rows are fresh enough, else later."""
        now = self._clock()
        searched = question.searched_for(options.consumer)
        watch = self._watches.get(searched) or Watch(searched, now)
        subscription = watch.subscription(subscriber, question, options, now)
        self._watches[searched] = watch
        self.subscriptions += 1
        is_fresh = watch.status is WatchStatus.HELD or now - watch.confirmed_at <= options.interval
        if is_fresh and watch.window.can_begin(subscription.token):
            due = watch.due + watch.interval
            if watch.status is WatchStatus.SCHEDULED and due < self._reads.due_at(watch):
                self._reads.add(watch, due)
            self._begin(subscription, now)
        else:
            watch.waiting[subscription] = False
            if watch.failure is not None:
                self._fail(subscription, watch.failure)
            if watch.status is not WatchStatus.ASKED:
                self._ask_now(watch, now)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Ends a subscription; does nothing when it has ended."""
        if subscription.is_ended:
            return
        subscription.end()
        self._queue.discard(subscription)
        self.subscriptions -= 1
        watch = subscription.watch
        watch.remove(subscription)
        if not watch.subscriptions:
            watch.status = WatchStatus.ENDED
            self._reads.discard(watch)
            del self._watches[watch.question]

    def take_due(self) -> list[Watch]:
        """Returns watches that are due for a timed read (ASKED) or a long poll (HELD), each once until its answer."""
        due = [watch for watch in self._due_now if watch.status in (WatchStatus.ASKED, WatchStatus.HELD)]
        self._due_now.clear()
        for slot, watch in self._reads.take(self._clock()):
            watch.status = WatchStatus.ASKED
            watch.due = slot * self._reads.tick
            due.append(watch)
        for watch in due:
            if watch.waiting:
                watch.regard()
        return due

    def advance(self) -> None:
        """Notifies the subscribers of subscriptions that have news and have reached the end of their interval."""
        now = self._clock()
        for _, subscription in self._queue.take(now):
            if subscription.status is QUEUED:
                subscription.status = CURRENT
                self._offer(subscription, now)  # which queues it again if its interval is not over

    def answered(self, watch: Watch, result: RangeResult) -> None:
        """Takes a replica's answer."""
        now = self._clock()
        watch.lag_ms = result.lag_ms
        if watch.accept(result):
            self.skipped += watch.take_skipped()
            for subscription in tuple(watch.subscriptions):
                if subscription.status is CURRENT:
                    self._offer(subscription, now)
        self._go_on(watch, now)

    def unchanged(self, watch: Watch, progress: Progress) -> None:
        """Takes a replica's answer that there is nothing newer."""
        watch.window.unchanged(progress.position)
        watch.lag_ms = progress.lag_ms
        self._go_on(watch, self._clock())

    def failed(self, watch: Watch, error: RequestError) -> None:
        """Notes a failed read; the question is asked again at its interval.

        Subscriptions get the error at once when their rows are too large or the question is refused; otherwise, and if
        some of the rows may be hidden from them, they become blind after a while.
        """
        now = self._clock()
        if watch.failing_since is None:
            watch.failing_since = now
        if watch.failure is None and isinstance(error, RowTooLargeError | MalformedFrameError):
            watch.failure = error
            for subscription in tuple(watch.subscriptions):
                if not subscription.is_ended:
                    self._fail(subscription, error)
        self._ask_later(watch, now)

    def release(self, watch: Watch) -> None:
        """Schedules a watch anew that is no longer held by its long poll."""
        self._ask_again(watch, self._clock())

    def next_at(self) -> float:
        """Returns when to call `take_due` and `advance` next, unless `wake` is called before."""
        return self._queue.next_at(self._clock())

    def _go_on(self, watch: Watch, now: float) -> None:
        watch.confirmed_at, watch.failing_since, watch.failure = now, None, None
        window = watch.window
        if watch.waiting and window.position is not None:
            waiting, watch.waiting = watch.waiting, {}
            for subscription, is_asked in waiting.items():
                is_behind = window.is_behind(subscription.token)
                if is_behind and not watch.lag_ms and now - subscription.asked_at >= FALSE_TOKEN_S:
                    subscription.token, is_behind = None, False
                if not is_behind and (is_asked or window.can_begin(subscription.token)):
                    self._begin(subscription, now)
                elif subscription.status is WAITING:
                    # A replica that lags is asked again at the interval of the watch, not at once.
                    watch.waiting[subscription] = is_behind
        if window.position is not None and not all(watch.waiting.values()):
            # The query did not regard subscriptions that came while it was under way.
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
            # Ticks that passed while the question was asked are skipped.
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
        if subscription.status is WAITING:
            subscription.status = CURRENT
            subscription.begin()
            self._offer(subscription, now)

    def _fail(self, subscription: Subscription, error: RequestError) -> None:
        if isinstance(error, MalformedFrameError) or subscription.shows_all:
            subscription.failure = error
            subscription.subscriber.ready(subscription)

    def _offer(self, subscription: Subscription, now: float) -> None:
        if subscription.status is not CURRENT or not subscription.has_news:
            return
        if now + self._queue.tick < subscription.next_at:
            subscription.status = QUEUED
            self._queue.add(subscription, subscription.next_at)
            return
        subscription.next_at = max(subscription.next_at, now) + subscription.options.interval
        subscription.subscriber.ready(subscription)
        subscription.offered()
