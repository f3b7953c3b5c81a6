"""The state of a range: a window of its members, and the removals that subscribers who resume must hear of."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter, gt, lt

from typing_extensions import override

from ws_edge.hub.member_changes import Backlog, HeldRow, MemberChange, Move, move
from ws_edge.hub.watch import Subscription, Watch
from ws_edge.model.authorization import may_see, seen_by
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey
from ws_edge.upstream.queries import RangeResult

BY_POSITION = attrgetter("position")


@dataclass(slots=True, eq=False)
class RangeWatch(Watch):
    """A window of at most `limit` members. A query asks for the changes in the whole range.

    When the window is full and the range goes on behind it, members behind it are not known: if a known member leaves
    then, the window is read anew.
    """

    key: RangeKey
    members: dict[str, KeyState] = field(default_factory=dict, init=False)
    """The row of each member by its name."""
    has_more: bool = field(default=False, init=False)
    """Whether the range has members behind the window."""
    _doubled: set[str] = field(default_factory=set, init=False)
    """Members that stood under two keys when last heard of: when one goes, the window is read anew for the other."""
    _removals: OrderedDict[StoreKey, KeyState] = field(default_factory=OrderedDict, init=False)
    _removals_after: int = field(default=0, init=False)
    """All removals after this offset are remembered."""
    _is_outdated: bool = field(default=True, init=False)
    """Whether the window must be read anew."""

    @override
    def accept(self, result: KeyState | RangeResult) -> bool:
        assert isinstance(result, RangeResult)  # noqa: S101  the result of a query for a range
        if not self._is_current(result.position):
            # A replica that is behind still knows what was removed before the removals that are remembered.
            is_same_epoch = self.position is not None and self.position.epoch == result.position.epoch
            if is_same_epoch and result.removals_complete and result.position.offset >= self._removals_after:
                self._remember_removals(result)
            return False
        before = dict(self.members)
        if self.position is None:
            self._removals.clear()
        if result.whole:
            self._replace(result)
        else:
            self._apply(result)
        self._remember_removals(result)
        self.position = result.position
        moves = self._moves(before, result)
        for subscription in self.subscriptions:
            if subscription.is_in_force:
                for change in moves:
                    _note(subscription, change)
        return bool(moves)

    @override
    def can_begin(self, after: Position | None) -> bool:
        return self.position is not None and not self._reaches_back(after) and not self.is_behind(after)

    @override
    def is_behind(self, after: Position | None) -> bool:
        if after is None or self.position is None:
            return False
        return after.epoch == self.position.epoch and after.offset > self.position.offset

    @override
    def begin(self, subscription: Subscription) -> bool:
        backlog, after = _backlog_of(subscription), subscription.after
        missed = self._missed_after(after) if after is not None and backlog.sees_all else None
        if missed is None:
            subscription.after = None
            rows, consumer = self.members.values(), subscription.consumer
            seen = (seen_by(consumer, row) for row in rows if may_see(consumer, row))
            backlog.restart(MemberChange(None, row, snapshot=True) for row in seen)
        else:
            # The subscriber may have any older row of the member.
            seen = (seen_by(subscription.consumer, state) for state in missed)
            backlog.restart(MemberChange(HeldRow(state.key, None), state, snapshot=True) for state in seen)
        return missed is not None

    @override
    def rows(self) -> Iterable[KeyState]:
        return self.members.values()

    @override
    def has_news_for(self, subscription: Subscription) -> bool:
        return subscription.pending > 0

    @override
    def deliver(self, subscription: Subscription, snapshot: bool) -> None:
        subscription.subscriber.changed(subscription, None, snapshot)
        _backlog_of(subscription).offered()

    @override
    def position_of(self, subscription: Subscription) -> Position | None:
        if not subscription.is_in_force:
            return subscription.after
        return None if subscription.pending or self._is_outdated else self.position

    @override
    def _wanted(self) -> tuple[Position | None, bool]:
        positions = (subscription.after for subscription in self.waiting)
        resuming = [after for after in positions if after is not None and self._reaches_back(after)]
        return (min(resuming), True) if resuming else (self.position, self._is_outdated)

    def _missed_after(self, after: Position) -> list[KeyState] | None:
        """Returns the changes missed by somebody who knew the whole range up to `after`, in their order.

        None when that is not certain: removals may have been forgotten, or the range may have had more members than
        the limit, now or then.
        """
        removals = [removal for removal in self._removals.values() if removal.position > after]
        is_certain = (
            self.position is not None
            and self.position.epoch == after.epoch
            and after.offset >= self._removals_after
            and not self.has_more
            and len(self.members) + len(removals) <= self.key.limit
        )
        if not is_certain:
            return None
        gone: dict[str, KeyState] = {}
        for removal in sorted(removals, key=BY_POSITION):
            # One that has moved before it left is held under the key that it left first.
            key = gone.get(removal.key.member, removal).key
            gone[key.member] = KeyState(key, removal.position, commit_ns=removal.commit_ns)
        missed = [row for row in self.members.values() if row.position > after]
        missed += [removal for member, removal in gone.items() if member not in self.members]
        return sorted(missed, key=BY_POSITION)

    def _reaches_back(self, after: Position | None) -> bool:
        """Whether more removals must be asked for before a subscription can resume from `after`."""
        if after is None or self.position is None:
            return after is not None
        return after.epoch == self.position.epoch and after.offset < self._removals_after

    def _replace(self, result: RangeResult) -> None:
        previous, self.members, self._doubled = self.members, {}, set()
        for state in result.states:
            member, epoch = state.key.member, state.position.epoch
            held, other = previous.get(member), self.members.get(member)
            if held is not None and held.key != state.key:
                held = None
            if other is not None:
                self._doubled.add(member)
            comparable = [row for row in (held, other, state) if row is not None and row.position.epoch == epoch]
            self.members[member] = max(comparable, key=BY_POSITION)
        self.has_more, self._is_outdated = result.more, False

    def _apply(self, result: RangeResult) -> None:
        limit = self.key.limit
        orders = [_order(row) for row in self.members.values()] if self.has_more else []
        for state in sorted([*result.states, *result.removals], key=BY_POSITION):
            member = state.key.member
            row = self.members.get(member)
            if row is not None and row.position >= state.position:
                continue
            if state.row is not None:
                if row is not None and row.key != state.key:
                    self._doubled.add(member)
                self.members[member] = state
            elif row is not None and row.key == state.key:
                del self.members[member]
                self._is_outdated = self._is_outdated or member in self._doubled
            else:
                self._doubled.discard(member)
        ordered = sorted(self.members.values(), key=_order, reverse=self.key.reverse)
        if orders:
            last, is_behind = (min(orders), lt) if self.key.reverse else (max(orders), gt)
            ordered = [row for row in ordered if not is_behind(_order(row), last)]
            self._is_outdated = self._is_outdated or len(ordered) < limit
        self.has_more = self.has_more or len(ordered) > limit
        self.members = {row.key.member: row for row in ordered[:limit]}

    def _remember_removals(self, result: RangeResult) -> None:
        if result.whole and result.after is not None and result.removals_complete:
            after = result.after.offset
            self._removals_after = after if self.position is None else min(self._removals_after, after)
        elif result.whole:
            self._removals_after = result.position.offset
        for removal in result.removals:
            if removal.position >= self._removals.get(removal.key, removal).position:
                self._removals[removal.key] = removal
                self._removals.move_to_end(removal.key)
        # Who has missed more than the range may have members is sent all of them: see _missed_after.
        while len(self._removals) > self.key.limit:
            _, oldest = self._removals.popitem(last=False)
            self._removals_after = max(self._removals_after, oldest.position.offset)

    def _moves(self, before: dict[str, KeyState], result: RangeResult) -> list[Move]:
        removed = {removal.key: removal for removal in result.removals}
        moves = []
        for name, was in before.items():
            if name not in self.members:
                removal = removed.get(was.key, KeyState(was.key, result.position))
                moves.append(move(was, removal, removal.position))
        for name, row in self.members.items():
            if row is not before.get(name):
                # A row that came up from behind the window has changed long ago: it is news as of this result.
                position = row.position if name in before or not result.whole else result.position
                moves.append(move(before.get(name), row, position))
        return sorted(moves, key=_order_of_move)


def _note(subscription: Subscription, move: Move) -> None:
    """Adds a change to the subscriber's backlog, unless it came with a position that includes it."""
    after = subscription.after
    if after is not None and after.epoch == move.position.epoch and move.position.offset <= after.offset:
        return
    change = move.seen_by(subscription.consumer)
    if change is not None:
        _backlog_of(subscription).add(change)


def _backlog_of(subscription: Subscription) -> Backlog:
    assert subscription.backlog is not None  # noqa: S101  those of ranges have one
    return subscription.backlog


def _order_of_move(move: Move) -> tuple[Position, bool, str]:
    state = move.change.state
    return move.position, state.row is not None, state.key.member


def _order(row: KeyState) -> tuple[bytes, bytes]:
    return row.key.sort.encode(), row.key.member.encode()
