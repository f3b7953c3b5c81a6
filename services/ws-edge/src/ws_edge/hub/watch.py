"""What is watched and by whom."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.hub.member_changes import Backlog, MemberChange
from ws_edge.states import AnyKey, KeyState, Position, RangeKey
from ws_edge.upstream.queries import Query

if TYPE_CHECKING:
    from ws_edge.hub.content import Content


class Subscriber(Protocol):
    """Receives what a subscription brings. The hub calls it on the event loop: it must neither block nor raise."""

    __slots__ = ()

    def started(self, subscription: Subscription, recovered: bool, /) -> None:  # noqa: ARG002  a default
        """The subscription is in force; `recovered` when its position was accepted, so only what is newer follows."""
        return

    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        """Something newer is there; `snapshot` when the subscription begins with it.

        `state` is what the key holds. It is None for a range: `subscription.take()` returns its changes one by one.
        """

    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        """The subscription has ended, and nothing that it brought and that is still unsent may be sent."""

    def delayed(self, subscription: Subscription, /) -> None:  # noqa: ARG002  a default
        """The first answer takes long; it will come. Called once."""
        return


class SubscriptionStatus(Enum):
    """Where a subscription is between its start and its end. The hub alone changes it."""

    WAITING = auto()
    """Its first answer has not come."""
    CURRENT = auto()
    """It is in force, and has been delivered what is known."""
    QUEUED = auto()
    """It is in force, and has a delivery that waits for its interval to be over."""
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
    sees_all: InitVar[bool] = False
    """Whether the consumer may see whatever row is in the range, or has ever been in it."""
    backlog: Backlog | None = field(init=False)
    """The changes of a range that wait to be taken; a key has none, because only its latest state counts."""
    next_at: float = field(default=0.0, init=False)
    status: SubscriptionStatus = field(default=SubscriptionStatus.WAITING, init=False)

    def __post_init__(self, sees_all: bool) -> None:
        self.backlog = Backlog(sees_all) if isinstance(self.watch.key, RangeKey) else None

    @property
    def is_ended(self) -> bool:
        """Whether nothing comes of it any more."""
        return self.status is SubscriptionStatus.ENDED

    @property
    def is_in_force(self) -> bool:
        """Whether it has begun and has not ended."""
        return self.status in IN_FORCE

    @property
    def position(self) -> Position | None:
        """The position up to which everything has been delivered; None when something waits to be taken."""
        return self.watch.content.position_of(self)

    @property
    def pending(self) -> int:
        """The number of changes that wait to be taken."""
        return 0 if self.backlog is None else len(self.backlog)

    def take(self) -> MemberChange | None:
        """Removes and returns the oldest change of a range; None when there is none, or the subscription has ended."""
        return None if self.backlog is None or self.is_ended else self.backlog.take()

    def end(self) -> None:
        """Lets go of the subscriber, which must not live as long as the schedule remembers the subscription."""
        self.status = SubscriptionStatus.ENDED
        del self.subscriber


class WatchStatus(Enum):
    """How a watch is read. The schedule alone changes it, until the hub ends it."""

    SCHEDULED = auto()
    """Its next timed read is in the schedule."""
    ASKED = auto()
    """A timed read of it is due or under way."""
    HELD = auto()
    """It is in a long poll, so the edge has its changes at once."""
    ENDED = auto()
    """Nobody watches it."""


@dataclass(slots=True, eq=False)
class Watch:
    """One key or range with everybody who watches it, and when it is read again."""

    key: AnyKey
    content: Content
    due: float
    """When its latest timed read was due, in seconds of the hub's clock."""
    subscriptions: set[Subscription] = field(default_factory=set, init=False)
    waiting: dict[Subscription, bool] = field(default_factory=dict, init=False)
    """Those that have not begun, and whether a read that regards them has been asked for."""
    interval: float = field(default=0.0, init=False)
    """The shortest interval of its subscriptions, in seconds; 0 keeps it in a long poll."""
    status: WatchStatus = field(default=WatchStatus.SCHEDULED, init=False)
    slot: int = field(default=-1, init=False)
    """The slot of the schedule that holds its next timed read."""
    confirmed_at: float = field(default=0.0, init=False)
    """When a replica last answered for it."""
    _query: Query | None = field(default=None, init=False)
    _intervals: dict[float, int] = field(default_factory=dict, init=False)

    def add(self, subscription: Subscription) -> None:
        """Adds a subscription."""
        self.subscriptions.add(subscription)
        self._intervals[subscription.interval] = self._intervals.get(subscription.interval, 0) + 1
        self.interval = min(self._intervals)

    def remove(self, subscription: Subscription) -> None:
        """Removes a subscription."""
        self.subscriptions.discard(subscription)
        self.waiting.pop(subscription, None)
        self._intervals[subscription.interval] -= 1
        if not self._intervals[subscription.interval]:
            del self._intervals[subscription.interval]
            self.interval = min(self._intervals, default=0.0)

    def can_begin(self, subscription: Subscription, now: float) -> bool:
        """Whether what is known is fresh enough for the subscription, and enough to begin with."""
        is_fresh = self.status is WatchStatus.HELD or now - self.confirmed_at <= subscription.interval
        return is_fresh and self.content.can_begin(subscription.after)

    def query(self) -> Query:
        """What to ask the query service now; the encoded query is kept while it stays the same."""
        self._query = (self._query or Query.of(self.key)).newer_than(*self.content.wanted(self.waiting))
        return self._query
