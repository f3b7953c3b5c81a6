"""The changes of the members of a range, as seen by a consumer, and those that a subscriber has not taken yet."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ws_edge.model.authorization import Consumer, may_see, seen_by
from ws_edge.model.documents import changed_names
from ws_edge.model.states import KeyState, Position, StoreKey


class HeldRow(NamedTuple):
    """Which row of a member a subscriber has: its key, and its position, or None when it may be any older one."""

    key: StoreKey
    position: Position | None


@dataclass(slots=True, eq=False)
class MemberChange:
    """A change of one member, as it is sent to one subscriber. It holds no row but the one that is to be sent."""

    before: HeldRow | None
    """What the subscriber has of the member; None when it has nothing."""
    state: KeyState
    """What the member holds; without a row it has left, and the key is that under which the subscriber has the row."""
    skipped: int = 0
    """How many earlier changes of the member this one replaces, because the client was slow."""
    snapshot: bool = False
    """Whether it is sent because the subscription begins, and not because it happens now."""
    names: frozenset[str] | None = None
    """The fields in which the row differs from the one that the subscriber has; None when that is not certain."""

    def followed_by(self, later: "MemberChange", skipped: int) -> "MemberChange | None":
        """Both as one change, with `skipped` more of them not sent; None when they cancel each other out."""
        before, state = self.before, later.state
        if state.row is None:
            if before is None:
                return None
            state = KeyState(before.key, state.position, commit_ns=state.commit_ns)
        elif before is not None and before.position == state.position:
            return None
        names = None if self.names is None or later.names is None else self.names | later.names
        return MemberChange(before, state, self.skipped + skipped, names=names)


class Move(NamedTuple):
    """A change of a member as of a position, with the row before it: both rows decide who may see the change."""

    before: KeyState | None
    change: MemberChange
    position: Position

    def seen_by(self, consumer: Consumer) -> MemberChange | None:
        """The change for this consumer: a row that becomes somebody else's leaves. None when all of it is hidden."""
        before, state = self.before, self.change.state
        saw = before is None or may_see(consumer, before)
        sees = may_see(consumer, state)
        if saw and sees:
            seen = seen_by(consumer, state)
            return self.change if seen is state else MemberChange(self.change.before, seen, names=self.change.names)
        if sees and state.row is not None:
            return MemberChange(None, seen_by(consumer, state))
        if saw and before is not None:
            return MemberChange(self.change.before, KeyState(before.key, state.position, commit_ns=state.commit_ns))
        return None


def move(before: KeyState | None, state: KeyState, position: Position) -> Move:
    """Returns the change from one row, or None, to another, or to a state without one."""
    held = None if before is None else HeldRow(before.key, before.position)
    return Move(before, MemberChange(held, state, names=names_between(before, state)), position)


def names_between(before: KeyState | None, state: KeyState) -> frozenset[str] | None:
    """Returns the names of fields in which two states of a member differ; None when all of the row counts as new."""
    if before is None or before.key != state.key or before.is_unreadable or state.is_unreadable:
        return None
    if before.row is None or state.row is None:
        return None
    if before.private is not None and state.private is not None:
        return changed_names(before.private.full, state.private.full)
    return changed_names(before.row, state.row)


@dataclass(slots=True, eq=False)
class Backlog:
    """The changes of a range that one subscriber has not taken yet.

    There is at most one per member, so there are never more than the range has had members since the subscriber last
    took one: a slow client costs a bounded amount of memory, and gets the newest.
    """

    sees_all: bool
    """Whether the consumer may see whatever row is in the range, or has ever been in it."""
    held: HeldRow | None = field(default=None, init=False)
    """Of a key: which row the subscriber has, once it has taken all."""
    _changes: dict[str, MemberChange] = field(default_factory=dict, init=False)
    _is_offered: bool = field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._changes)

    @property
    def readable(self) -> int:
        """How many changes can be sent; of the others the subscriber gets an error each."""
        return sum(not change.state.is_unreadable for change in self._changes.values())

    def __contains__(self, member: str) -> bool:
        return member in self._changes

    def restart(self, changes: Iterable[MemberChange]) -> None:
        self._changes = {change.state.key.member: change for change in changes}

    def add(self, change: MemberChange) -> None:
        """Adds a change; it becomes one with the earlier change of its member, if that has not been taken."""
        member = change.state.key.member
        earlier = self._changes.pop(member, None)
        merged = change if earlier is None else earlier.followed_by(change, int(self._is_offered))
        if merged is not None:
            self._changes[member] = merged

    def hold(self, state: KeyState, snapshot: bool, names: frozenset[str] | None = None) -> None:
        """Adds the present state of a key, as the change of the only member of a range."""
        if state.row is not None or self.held is not None:
            self.add(MemberChange(self.held, state, snapshot=snapshot, names=names))
        self.held = None if state.row is None else HeldRow(state.key, state.position)

    def take(self) -> MemberChange | None:
        """Removes and returns the oldest change; None when there is none."""
        change = self._changes.pop(next(iter(self._changes), ""), None)
        self._is_offered = bool(self._changes)
        return change

    def offered(self) -> None:
        """Notes that the subscriber knows of the changes. Those not taken by now count as skipped when replaced."""
        self._is_offered = bool(self._changes)
