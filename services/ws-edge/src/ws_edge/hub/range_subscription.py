"""One consumer's interest in one range, and what it has not been told yet."""

from __future__ import annotations

from typing import Protocol

from ws_edge.authorization import Consumer, may_see
from ws_edge.errors import RequestError
from ws_edge.hub.member_changes import MemberChange, Move, entered
from ws_edge.hub.range_watch import RangeListener, RangeWatch
from ws_edge.states import Position


class RangeSubscriber(Protocol):
    """Whoever is told of ranges; a session's. The hub calls it on the event loop: it must neither block nor raise."""

    def range_started(self, subscription: RangeSubscription, recovered: bool, /) -> None:
        """The subscription is in force; its `pending` says what follows."""

    def range_changed(self, subscription: RangeSubscription, /) -> None:
        """There is something in `pending`, which is to be taken from there as soon as it can be sent."""

    def range_refused(self, subscription: RangeSubscription, error: RequestError, /) -> None:
        """The subscription has ended."""

    def range_delayed(self, subscription: RangeSubscription, /) -> None:
        """The first answer takes long; it will come. Told once."""


class RangeSubscription(RangeListener):
    """One subscriber's watching of one range.

    `pending` has at most one change per member, so it never has more than the range has had members since the
    subscriber was last told: a slow one costs a bounded amount of memory, and gets the newest.
    """

    __slots__ = ("is_offered", "pending", "sees_all", "subscriber")
    watch: RangeWatch

    def __init__(
        self,
        watch: RangeWatch,
        subscriber: RangeSubscriber,
        consumer: Consumer,
        after: Position | None,
        interval: float,
        sees_all: bool,
        reference: str = "",
    ) -> None:
        """`sees_all`: whatever row is in the range may be seen by the consumer, now and whenever it was there."""
        super().__init__(watch, consumer, after, interval, reference)
        self.subscriber = subscriber
        self.sees_all = sees_all
        self.pending: dict[str, MemberChange] = {}
        self.is_offered = False
        """Whether the subscriber knows that something is pending, and was too slow to take it."""

    @property
    def has_news(self) -> bool:
        """See AnySubscription."""
        return bool(self.pending)

    def check(self) -> None:
        """See AnySubscription: who may watch the range is checked by its group; rows are hidden one by one."""

    def begin(self) -> None:
        """See AnySubscription."""
        after = self.position
        missed = self.watch.since(after) if after is not None and self.sees_all else None
        if missed is None:
            self.position = None
            members = self.watch.members.items()
            self.pending = {name: entered(row) for name, row in members if may_see(self.consumer, row)}
        else:
            self.pending = {change.key.member: change for change in missed}
        self.subscriber.range_started(self, missed is not None)

    def note(self, move: Move) -> None:
        """See RangeListener."""
        known = self.position
        if known is not None and known.epoch == move.position.epoch and move.position.offset <= known.offset:
            return
        seen = move.seen_by(self.consumer)
        if seen is None:
            return
        member = seen.key.member
        earlier = self.pending.pop(member, None)
        told = seen if earlier is None else earlier.followed_by(seen, int(self.is_offered))
        if told is not None:
            self.pending[member] = told

    def take(self) -> MemberChange | None:
        """Removes and returns the oldest change; None when nothing is pending."""
        if not self.pending:
            self.is_offered = False
            return None
        change = self.pending.pop(next(iter(self.pending)))
        self.is_offered = bool(self.pending)
        return change

    @property
    def through(self) -> Position | None:
        """How far the subscriber has been told everything; None while something is pending."""
        if self.pending or self.watch.position is None:
            return None
        if self.position is not None and self.position.epoch == self.watch.position.epoch:
            return max(self.position, self.watch.position)
        return self.watch.position

    def deliver(self, snapshot: bool) -> None:  # noqa: ARG002  each change knows whether it is of a snapshot
        """See AnySubscription."""
        self.subscriber.range_changed(self)
        self.is_offered = bool(self.pending)

    def refuse(self, error: RequestError) -> None:
        """See AnySubscription."""
        self.subscriber.range_refused(self, error)

    def delay(self) -> None:
        """See AnySubscription."""
        self.subscriber.range_delayed(self)
