"""Watches and their subscribers. A key and a range differ in their known state: see KeyWatch and RangeWatch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from typing_extensions import override

from ws_edge.errors import RequestError
from ws_edge.hub.member_changes import Backlog, HeldRow, MemberChange, names_between
from ws_edge.model.authorization import Consumer, check_row, seen_by
from ws_edge.model.states import AnyKey, KeyState, Place, Position, is_news
from ws_edge.upstream.queries import Query, RangeResult

UNKNOWN_SHARE = 0.01
"""A key that has had no row for a while is read again after this share of that time: most will never have one."""

MAX_UNKNOWN_S = 1.0

STALE_EPOCH_LIMIT = 3
"""So many answers in a row bring back an epoch that was left."""


class Subscriber(Protocol):
    """Receives the news of a subscription. The hub calls it on the event loop: it must neither block nor raise."""

    __slots__ = ()

    def started(self, subscription: Subscription, recovered: bool, /) -> None:  # noqa: ARG002  a default
        """The subscription is in force; `recovered` when its position was accepted, so only newer changes follow."""
        return

    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        """Something newer is there; `snapshot` when the subscription begins with it, or is told its state again.

        `state` is that of the key. It is None for a range: `subscription.take()` returns its changes one by one.
        """

    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        """The subscription has ended, and nothing that it brought and that is still unsent may be sent."""

    def delayed(self, subscription: Subscription, /) -> None:  # noqa: ARG002  a default
        """Nobody has answered for long, or only with an error: `subscription.watch.failure`. An answer will come.

        Called once before the first answer, and once each time that answers stay out later.
        """
        return

    def change_taken(self, subscription: Subscription, change: MemberChange, /) -> None:  # noqa: ARG002  a default
        """A change of a range was taken, to be sent before all that is added to the outbox from now on."""
        return


class SubscriptionStatus(Enum):
    """Where a subscription is between its start and its end. The hub alone changes it."""

    WAITING = auto()
    """Its first answer has not come."""
    CURRENT = auto()
    """It is in force, and has been delivered what is known."""
    QUEUED = auto()
    """It is in force, and waits for its interval to be over, to be delivered what is new or to be told again."""
    ENDED = auto()


IN_FORCE = (SubscriptionStatus.CURRENT, SubscriptionStatus.QUEUED)


@dataclass(slots=True, eq=False)
class Subscription:
    """One subscriber's interest in one key or range."""

    watch: Watch
    subscriber: Subscriber
    consumer: Consumer
    after: Position | None
    """The position up to which the subscriber has everything; None when it has nothing."""
    interval: float
    """The minimum time between two deliveries, in seconds; 0 delivers each change as soon as the edge has it."""
    reference: str = ""
    """The client's name for the request."""
    backlog: Backlog | None = None
    """The changes of a range that wait to be taken; a key has none, because only its latest state counts."""
    repeat: bool = False
    """Whether the state of a key is delivered again after each interval, as long as replicas answer for it."""
    place: Place | None = None
    """Where in a query it is; a key in a query has a backlog, as a range of one member. None outside of queries."""
    next_at: float = field(default=0.0, init=False)
    status: SubscriptionStatus = field(default=SubscriptionStatus.WAITING, init=False)

    @property
    def is_ended(self) -> bool:
        return self.status is SubscriptionStatus.ENDED

    @property
    def is_in_force(self) -> bool:
        return self.status in IN_FORCE

    @property
    def outbox_key(self) -> AnyKey | Place:
        """Under which its unsent changes wait: a range may be in several places."""
        return self.watch.key if self.place is None else self.place

    @property
    def position(self) -> Position | None:
        """The position up to which everything has been delivered; None when something waits to be taken."""
        return self.watch.position_of(self)

    @property
    def pending(self) -> int:
        return 0 if self.backlog is None else len(self.backlog)

    def take(self) -> MemberChange | None:
        """Removes and returns the oldest change of a range; None when there is none, or the subscription has ended."""
        if self.backlog is None or self.is_ended:
            return None
        change = self.backlog.take()
        if change is not None:
            self.subscriber.change_taken(self, change)
        return change

    def end(self) -> None:
        """Lets go of the subscriber, which must not live as long as somebody remembers the subscription."""
        self.status = SubscriptionStatus.ENDED
        del self.subscriber


class WatchStatus(Enum):
    """How a watch is read. The hub alone changes it."""

    SCHEDULED = auto()
    """Its next timed read is in the schedule."""
    ASKED = auto()
    """A timed read of it is due or under way."""
    HELD = auto()
    """It is in a long poll, so the edge has its changes at once."""
    ENDED = auto()
    """Nobody watches it."""


@dataclass(slots=True, eq=False)
class Watch(ABC):
    """A key or a range: its subscriptions, its next read, its known state and how answers change that."""

    key: AnyKey
    due: float
    """When its latest timed read was due, in seconds of the hub's clock."""
    subscriptions: set[Subscription] = field(default_factory=set, init=False)
    repeating: set[Subscription] = field(default_factory=set, init=False)
    """Those that are told again what they have."""
    queried: set[Subscription] = field(default_factory=set, init=False)
    """Those that are part of a query."""
    waiting: dict[Subscription, bool] = field(default_factory=dict, init=False)
    """Those that have not begun, and whether a read that regards them has been asked for."""
    interval: float = field(default=0.0, init=False)
    """The shortest interval of its subscriptions, in seconds; 0 keeps it in a long poll."""
    status: WatchStatus = field(default=WatchStatus.SCHEDULED, init=False)
    confirmed_at: float = field(default=0.0, init=False)
    """When a replica last answered for it."""
    position: Position | None = field(default=None, init=False)
    """The position up to which it is known; None when there has been no answer."""
    lag_ms: int = field(default=0, init=False)
    """As in KeyState, of the last answer."""
    retired_epochs: frozenset[int] = field(default=frozenset(), init=False)
    """Epochs that were left: a replica that still answers with one of them is behind."""
    failing_since: float | None = field(default=None, init=False)
    """Since when each read of it has failed; None when the last one has not."""
    failure: RequestError | None = field(default=None, init=False)
    """Why reads fail, once subscribers have been told so."""
    stale_answers: int = field(default=0, init=False)
    """How many answers in a row were of retired epochs."""
    _query: Query | None = field(default=None, init=False)
    _intervals: dict[float, int] = field(default_factory=dict, init=False)

    def add(self, subscription: Subscription) -> None:
        self.subscriptions.add(subscription)
        if subscription.repeat:
            self.repeating.add(subscription)
        if subscription.place is not None:
            self.queried.add(subscription)
        self._intervals[subscription.interval] = self._intervals.get(subscription.interval, 0) + 1
        self.interval = min(self._intervals)

    def remove(self, subscription: Subscription) -> None:
        self.subscriptions.discard(subscription)
        self.repeating.discard(subscription)
        self.queried.discard(subscription)
        self.waiting.pop(subscription, None)
        self._intervals[subscription.interval] -= 1
        if not self._intervals[subscription.interval]:
            del self._intervals[subscription.interval]
            self.interval = min(self._intervals, default=0.0)

    def query(self) -> Query:
        """Returns the query to send now; its encoding is kept while it stays the same."""
        self._query = (self._query or Query.of(self.key)).newer_than(*self._wanted())
        return self._query

    def pause(self, now: float) -> float:  # noqa: ARG002  a key needs it
        """How long after one timed read the next one is due, in seconds; 0 when it is to be read by long poll."""
        return self.interval

    def unchanged(self, position: Position | None) -> None:
        """A replica of the current epoch has answered that nothing is newer, up to `position` if it says so."""
        self.stale_answers = 0
        if position is not None and self.position is not None and self.position.epoch == position.epoch:
            self.position = max(self.position, position)

    def repeats(self, subscription: Subscription) -> bool:
        """Whether the subscriber is to be told again: since it was told last, a replica has answered for the watch."""
        told_at = subscription.next_at - subscription.interval
        return subscription.repeat and (self.status is WatchStatus.HELD or self.confirmed_at > told_at)

    def note_lag(self, lag_ms: int) -> None:
        """Notes for how long the state may have been out of date when a replica answered."""
        self.lag_ms = lag_ms

    @abstractmethod
    def accept(self, result: KeyState | RangeResult) -> bool:
        """Takes a result over unless it is old; returns whether it is news for subscriptions."""

    @abstractmethod
    def can_begin(self, after: Position | None) -> bool:
        """Whether a subscription with everything up to `after` can begin with the known state."""

    def is_behind(self, after: Position | None) -> bool:  # noqa: ARG002  a range needs it
        """Whether a subscription with everything up to `after` has to wait until as much is known here."""
        return False

    @abstractmethod
    def begin(self, subscription: Subscription) -> bool:
        """Begins a subscription with the known state; returns whether its position was accepted."""

    def check(self, consumer: Consumer) -> None:  # noqa: ARG002  a key needs it
        """Raises ForbiddenError when the consumer may not watch the row; rows of ranges are hidden instead."""
        return

    @abstractmethod
    def rows(self) -> Iterable[KeyState]:
        """The rows that are known."""

    @abstractmethod
    def has_news_for(self, subscription: Subscription) -> bool:
        """Whether the subscriber lacks something that is known."""

    @abstractmethod
    def deliver(self, subscription: Subscription, snapshot: bool) -> None:
        """Hands the subscriber its news."""

    @abstractmethod
    def position_of(self, subscription: Subscription) -> Position | None:
        """The position up to which everything has been delivered; None when something waits to be taken."""

    def _wanted(self) -> tuple[Position | None, bool]:
        """The position after which to ask for news, so that those who wait can begin, and whether to ask for all."""
        return self.position, False

    def _is_current(self, position: Position) -> bool:
        """Whether an answer as of the position is no older than the known state; enters its epoch if that is new.

        Epochs have no order, so one may be left by mistake: when a retired epoch keeps coming it must be right.
        """
        if self.position is None:
            return True
        if position.epoch in self.retired_epochs:
            self.stale_answers += 1
            if self.stale_answers < STALE_EPOCH_LIMIT:
                return False
        self.stale_answers = 0
        if position.epoch == self.position.epoch:
            return position >= self.position
        self.retired_epochs = (self.retired_epochs | {self.position.epoch}) - {position.epoch}
        self.position = None
        return True


@dataclass(slots=True, eq=False)
class KeyWatch(Watch):
    """A key and its latest state. `position` is that of the state, or a later one at which there was still no row."""

    latest: KeyState | None = field(default=None, init=False)
    unknown_since: float = field(init=False)
    """Since when the key is known to have no row, or is watched."""

    def __post_init__(self) -> None:
        self.unknown_since = self.due

    @override
    def pause(self, now: float) -> float:
        if self.interval == 0 or self.latest is None or self.latest.row is not None:
            self.unknown_since = now
            return self.interval
        return max(self.interval, min((now - self.unknown_since) * UNKNOWN_SHARE, MAX_UNKNOWN_S))

    @override
    def accept(self, result: KeyState | RangeResult) -> bool:
        assert isinstance(result, KeyState)  # noqa: S101  the result of a query for a key
        if not self._is_current(result.position):
            return False
        latest, position = self.latest, self.position
        self.position = result.position
        if latest is not None and position is not None and (result.position == position or not is_news(latest, result)):
            return False
        self.latest = result
        names = None if latest is None else names_between(latest, result)
        for subscription in self.queried:
            if subscription.is_in_force:
                self._note(subscription, snapshot=False, names=names)
        return True

    @override
    def note_lag(self, lag_ms: int) -> None:
        self.lag_ms = lag_ms
        if self.latest is not None:
            self.latest.note_lag(lag_ms)

    @override
    def can_begin(self, after: Position | None) -> bool:
        return self.latest is not None

    @override
    def begin(self, subscription: Subscription) -> bool:
        after, latest, backlog = subscription.after, self.latest, subscription.backlog
        recovered = after is not None and latest is not None and after.epoch == latest.position.epoch
        if backlog is not None and latest is not None:
            # The subscriber may have any older row.
            backlog.held = HeldRow(latest.key, None) if recovered else None
            self._note(subscription, snapshot=True)
        return recovered

    @override
    def rows(self) -> Iterable[KeyState]:
        return [] if self.latest is None or self.latest.row is None else [self.latest]

    @override
    def check(self, consumer: Consumer) -> None:
        if self.latest is not None:
            check_row(consumer, self.latest)

    @override
    def has_news_for(self, subscription: Subscription) -> bool:
        if subscription.backlog is not None:
            return subscription.pending > 0
        return self.latest is not None and self.latest.is_newer_than(subscription.after)

    @override
    def deliver(self, subscription: Subscription, snapshot: bool) -> None:
        if subscription.backlog is not None:
            subscription.subscriber.changed(subscription, None, snapshot)
            subscription.backlog.offered()
        elif self.latest is not None:
            subscription.after = self.latest.position
            subscription.subscriber.changed(subscription, seen_by(subscription.consumer, self.latest), snapshot)

    @override
    def position_of(self, subscription: Subscription) -> Position | None:
        return None if subscription.pending else subscription.after

    def _note(self, subscription: Subscription, snapshot: bool, names: frozenset[str] | None = None) -> None:
        """Adds the latest state to the subscriber's backlog, if it takes changes one by one and lacks it."""
        backlog, latest = subscription.backlog, self.latest
        if backlog is not None and latest is not None and latest.is_newer_than(subscription.after):
            subscription.after = latest.position
            backlog.hold(seen_by(subscription.consumer, latest), snapshot, names)
