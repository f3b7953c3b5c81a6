"""One range that somebody watches: its members, and what each answer of the query service changes in it."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from typing import Any

from ws_edge.hub.interest import AnySubscription, AnyWatch
from ws_edge.hub.member_changes import MemberChange, Move, gone, resumed
from ws_edge.querying.questions import RangeAnswer, RangeQuestion, Removal, range_question
from ws_edge.states import Position, RangeKey, StoreKey, Version

REMOVALS = 256
"""The removals that are remembered beside as many as the range may have members, for subscribers who resume."""


class RangeListener(AnySubscription):
    """A subscription that hears of each change of a range, and not only that there was one."""

    __slots__ = ()

    @abstractmethod
    def note(self, move: Move) -> None:
        """Adds a change to what the subscriber is to be told; one that it came with is left out."""


class RangeWatch(AnyWatch):
    """A window of at most `limit` members. What is asked for again is what has changed in the whole range.

    When the window is full and the range goes on behind it, members behind it are not known: should one that is known
    leave, the window is read anew.
    """

    __slots__ = ("_known_since", "_question", "_removals", "_stale", "members", "more")
    key: RangeKey
    subscriptions: set[RangeListener]  # type: ignore[assignment]  # the hub adds no others to a range
    waiting: dict[RangeListener, bool]  # type: ignore[assignment]  # as above

    def __init__(self, key: RangeKey, now: float) -> None:
        super().__init__(key, now)
        self.members: dict[str, Version] = {}
        """The row of each member by its name."""
        self.more = False
        """Whether the range has members that are not in the window."""
        self._removals: OrderedDict[StoreKey, Removal] = OrderedDict()
        self._known_since = 0
        """The offset after which all removals are remembered."""
        self._stale = True
        """Whether the window must be read anew."""
        self._question: RangeQuestion | None = None

    @property
    def is_known(self) -> bool:
        """See AnyWatch."""
        return self.position is not None

    def suffices(self, subscription: AnySubscription) -> bool:
        """See AnyWatch: who resumes from before the removals that are known needs another answer."""
        return self.position is not None and not self._reaches_back(subscription.position)

    def ask(self) -> RangeQuestion:
        """See AnyWatch."""
        after = self.position
        resuming = [each.position for each in self.waiting if self._reaches_back(each.position)]
        if resuming:
            after = min(position for position in resuming if position is not None)
        whole = self._stale or bool(resuming)
        asked = self._question
        if asked is None or (asked.after, asked.whole) != (after, whole):
            asked = range_question(self.key, after, whole, None if asked is None else asked.group_hash)
            self._question = asked
        return asked

    def since(self, after: Position) -> list[MemberChange] | None:
        """What a subscriber has missed who knew the whole range through `after`, in the order in which it happened.

        None when that is not known for certain: because removals may be forgotten, or because the range may have had
        more members than the limit, now or then.
        """
        removals = [each for each in self._removals.values() if each.position > after]
        is_certain = (
            self.position is not None
            and self.position.epoch == after.epoch
            and after.offset >= self._known_since
            and not self.more
            and len(self.members) + len(removals) <= self.key.limit
        )
        if not is_certain:
            return None
        missed = [resumed(row) for row in self.members.values() if row.position > after]
        missed += [gone(*removal) for removal in removals if removal.key.member not in self.members]
        return sorted(missed, key=lambda change: change.position)

    def accept(self, answer: Any) -> bool:
        """See AnyWatch: takes a RangeAnswer over, and notes for each subscriber what it changes."""
        found: RangeAnswer = answer
        if not self._is_current(found):
            self._note_earlier_removals(found)
            return False
        before = dict(self.members)
        if found.whole:
            self._replace(found)
        else:
            self._apply(found)
        self._note_removals(found)
        self.position = found.position if self.position is None else max(self.position, found.position)
        moves = self._moves(before, found)
        for subscription in self.subscriptions:
            if subscription.started:
                for move in moves:
                    subscription.note(move)
        return bool(moves)

    def _reaches_back(self, after: Position | None) -> bool:
        if after is None or self.position is None:
            return after is not None
        return after.epoch == self.position.epoch and after.offset < self._known_since

    def _is_current(self, found: RangeAnswer) -> bool:
        if self.position is None:
            return True
        if self.is_behind(found.position.epoch):
            return False
        self.confirm()
        if found.position.epoch == self.position.epoch:
            return found.position >= self.position
        self.enter_epoch(found.position.epoch)
        self.position = None
        self._removals.clear()
        return True

    def _replace(self, found: RangeAnswer) -> None:
        held, self.members = self.members, {}
        for version in found.versions:
            for known in (held.get(version.key.member), self.members.get(version.key.member)):
                if known is not None and known.position.epoch == version.position.epoch:
                    version = max(known, version, key=_offset)  # noqa: PLW2901  the newest of the three
            self.members[version.key.member] = version
        self.more, self._stale = found.more, False

    def _apply(self, found: RangeAnswer) -> None:
        last = self._last() if self.more else None
        told: list[Version | Removal] = [*found.versions, *found.removals]
        for change in sorted(told, key=_offset):
            known = self.members.get(change.key.member)
            if known is not None and known.position >= change.position:
                continue
            if isinstance(change, Version):
                self.members[change.key.member] = change
            elif known is not None and known.key == change.key:
                del self.members[change.key.member]
        if last is not None:
            self.members = {name: row for name, row in self.members.items() if not self._is_behind_window(row, last)}
            self._stale = len(self.members) < self.key.limit
        ordered = sorted(self.members.values(), key=_order, reverse=self.key.reverse)
        self.more = self.more or len(ordered) > self.key.limit
        self.members = {row.key.member: row for row in ordered[: self.key.limit]}

    def _last(self) -> tuple[bytes, bytes] | None:
        orders = [_order(row) for row in self.members.values()]
        return (min(orders) if self.key.reverse else max(orders)) if orders else None

    def _is_behind_window(self, row: Version, last: tuple[bytes, bytes]) -> bool:
        return _order(row) < last if self.key.reverse else _order(row) > last

    def _note_earlier_removals(self, found: RangeAnswer) -> None:
        """A replica that is behind still knows what was removed before the removals that are remembered."""
        reaches = self.position is not None and self.position.epoch == found.position.epoch
        if reaches and found.removals_complete and found.position.offset >= self._known_since:
            self._note_removals(found)

    def _note_removals(self, found: RangeAnswer) -> None:
        if found.whole and found.after is not None and found.removals_complete:
            after = found.after.offset
            self._known_since = after if self.position is None else min(self._known_since, after)
        elif found.whole:
            self._known_since = found.position.offset
        for removal in found.removals:
            if removal.position >= self._removals.get(removal.key, removal).position:
                self._removals[removal.key] = removal
                self._removals.move_to_end(removal.key)
        while len(self._removals) > self.key.limit + REMOVALS:
            _, oldest = self._removals.popitem(last=False)
            self._known_since = max(self._known_since, oldest.position.offset)

    def _moves(self, before: dict[str, Version], found: RangeAnswer) -> list[Move]:
        removed = {each.key: each for each in found.removals}
        moves = []
        for name in sorted(before.keys() | self.members.keys()):
            was, now = before.get(name), self.members.get(name)
            if was is now:
                continue
            if now is not None:
                # A row that came up from behind the window has changed long ago: it is news as of this answer.
                position = now.position if was is not None or not found.whole else found.position
                moves.append((position, True, Move(was, now, position, now.commit_ns)))
            elif was is not None:
                removal = removed.get(was.key, Removal(was.key, found.position, None))
                moves.append((removal.position, False, Move(was, None, removal.position, removal.commit_ns)))
        return [move for _, _, move in sorted(moves, key=lambda each: each[:2])]


def _offset(change: Version | Removal) -> int:
    return change.position.offset


def _order(row: Version) -> tuple[bytes, bytes]:
    """What the rows of a group are ordered by in the store."""
    return row.key.sort.encode(), row.key.member.encode()
