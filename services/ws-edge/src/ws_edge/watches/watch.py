"""A watched question: its subscriptions, its next read, and since when its reads fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from ws_edge.errors import RequestError
from ws_edge.model.questions import Question
from ws_edge.model.states import Position
from ws_edge.upstream.queries import Query, RangeResult
from ws_edge.watches.audience import Audience, Identity, WatchOptions, identity_of
from ws_edge.watches.pending import Batch
from ws_edge.watches.subscription import WAITING, Subscriber, Subscription
from ws_edge.watches.window import Window

UNKNOWN_SHARE = 0.01
"""A key without a row is read again after this share of the time it has had none: most will never have one."""

MAX_UNKNOWN_S = 1.0


class WatchStatus(Enum):
    """How a watch is read. Only the hub changes it."""

    SCHEDULED = auto()
    """Its next timed read is in the schedule."""
    ASKED = auto()
    """Its timed read is due or under way."""
    HELD = auto()
    """It is in a long poll, so the edge has its changes at once."""
    ENDED = auto()
    """It has no subscriptions."""


@dataclass(slots=True, eq=False)
class Watch:
    """A question, its known rows and its subscriptions, which all share one read."""

    question: Question
    due: float
    """When its latest timed read was due, in seconds of the hub's clock."""
    window: Window = field(init=False)
    subscriptions: dict[Subscription, None] = field(default_factory=dict, init=False)
    audiences: dict[Identity, Audience] = field(default_factory=dict, init=False)
    """The audiences of its subscriptions, by their identity."""
    waiting: dict[Subscription, bool] = field(default_factory=dict, init=False)
    """The subscriptions that have not begun, with whether a read that regards them was requested."""
    interval: float = field(default=0.0, init=False)
    """The shortest interval of its subscriptions, in seconds; 0 keeps it in a long poll."""
    status: WatchStatus = field(default=WatchStatus.SCHEDULED, init=False)
    confirmed_at: float = field(init=False)
    """When a replica last answered, or when the watch began."""
    lag_ms: int = field(default=0, init=False)
    """For how long the last answer may have been out of date; 0 for a negligible time."""
    failing_since: float | None = field(default=None, init=False)
    """Since when every read has failed; None if the last one succeeded."""
    failure: RequestError | None = field(default=None, init=False)
    """The error by which its row cannot be read, or its question is refused, as reported to its subscriptions."""
    unknown_since: float = field(init=False)
    """Since when a key is known to have no row, or else is watched."""
    _skipped: int = field(default=0, init=False)
    _query: Query | None = field(default=None, init=False)
    _intervals: dict[float, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.window = Window(self.question)
        self.unknown_since = self.confirmed_at = self.due

    def subscription(
        self, subscriber: Subscriber, question: Question, options: WatchOptions, now: float
    ) -> Subscription:
        """Returns a new subscription to a question, for which that of the watch is searched. It has not begun."""
        identity = identity_of(question, options)
        audience = self.audiences.get(identity)
        if audience is None:
            audience = self.audiences[identity] = Audience(self.window, question, options)
        audience.members += 1
        subscription = Subscription(self, audience, subscriber, options, now)
        self.subscriptions[subscription] = None
        interval = options.interval
        self._intervals[interval] = self._intervals.get(interval, 0) + 1
        self.interval = min(self._intervals)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        del self.subscriptions[subscription]
        self.waiting.pop(subscription, None)
        audience = subscription.audience
        audience.members -= 1
        if not audience.members:
            del self.audiences[identity_of(audience.question, audience.options)]
        interval = subscription.options.interval
        self._intervals[interval] -= 1
        if not self._intervals[interval]:
            del self._intervals[interval]
            self.interval = min(self._intervals, default=0.0)

    def query(self) -> Query:
        """Returns the query to send now; its encoding is kept while it stays the same."""
        after, whole = self.window.position, self.window.is_outdated
        if self.question.is_key:
            whole = False
        elif resuming := self._resuming():
            after, whole = min(resuming.values()), True
        self._query = (self._query or Query.of(self.question)).newer_than(after, whole)
        return self._query

    def regard(self) -> None:
        """Notes which waiting subscriptions the next read regards: all but those with a token of another epoch."""
        resuming = self._resuming()
        for subscription in self.waiting:
            self.waiting[subscription] = subscription in resuming or not self._reaches_back(subscription)

    def pause(self, now: float) -> float:
        """Returns the seconds until the next timed read; 0 for a read by long poll."""
        is_known = not self.question.is_key or self.window.position is None or len(self.window.rows) > 0
        if self.interval == 0 or is_known:
            self.unknown_since = now
            return self.interval
        return max(self.interval, min((now - self.unknown_since) * UNKNOWN_SHARE, MAX_UNKNOWN_S))

    def take_skipped(self) -> int:
        """Returns how many versions slow subscriptions have left out since the last call."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def accept(self, result: RangeResult) -> bool:
        """Applies a result unless it is older than the rows; returns whether a subscription may have news."""
        was_outdated = self.window.is_outdated
        moves = self.window.accept(result)
        batches = dict[Audience, Batch]()
        seen = {audience: audience.moves(moves) for audience in self.audiences.values() if moves}
        for subscription in self.subscriptions if moves else ():
            if subscription.status is not WAITING:
                self._skipped += subscription.note(seen[subscription.audience], batches)
        return bool(moves) or was_outdated

    def _resuming(self) -> dict[Subscription, Position]:
        """Returns the subscriptions for which the next read goes back, with their positions, all of the same epoch.

        Positions of two epochs cannot be compared. The answer tells which one is right: others are asked for then.
        """
        waiting = [(each, each.token.position) for each in self.waiting if each.token and self._reaches_back(each)]
        return {each: position for each, position in waiting if position.epoch == waiting[0][1].epoch}

    def _reaches_back(self, subscription: Subscription) -> bool:
        return self.window.reaches_back(subscription.token)
