"""What happens to the members of a range, as seen by a consumer, and what a subscriber has not taken of it yet."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ws_edge.authorization import Consumer, may_see
from ws_edge.states import KeyState, Position, StoreKey


class HeldRow(NamedTuple):
    """Which row of a member a subscriber has: its key, and its position, or None when it may be any older one."""

    key: StoreKey
    position: Position | None


@dataclass(slots=True, eq=False)
class MemberChange:
    """What one subscriber is sent about one member. It holds no row but the one that is to be sent.

    `frames` keeps the encoded frames of a removal, so that all its subscribers share them.
    """

    before: HeldRow | None
    """What the subscriber has of the member; None when it has nothing."""
    after: KeyState | None
    """The row; None when the member has left."""
    position: Position
    commit_ns: int | None = None
    skipped: int = 0
    """How many earlier changes of the member this one replaces, because the client was slow."""
    snapshot: bool = False
    """Whether it is sent because the subscription begins, and not because it happens now."""
    frames: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> StoreKey:
        """The key under which the row stands, or stood."""
        row = self.after or self.before
        assert row is not None  # noqa: S101  a member that neither was nor is there has not changed
        return row.key

    def followed_by(self, later: "MemberChange", skipped: int) -> "MemberChange | None":
        """Both as one change, with `skipped` more of them not sent; None when they cancel each other out."""
        before, after = self.before, later.after
        if before is None and after is None:
            return None
        if before is not None and after is not None and before.position == after.position:
            return None
        return MemberChange(before, after, later.position, later.commit_ns, self.skipped + skipped)


class Move(NamedTuple):
    """A change of a member with the row before it: the rows before and after decide who may see it."""

    before: KeyState | None
    change: MemberChange

    def seen_by(self, consumer: Consumer) -> MemberChange | None:
        """The change for this consumer: a row that becomes somebody else's leaves. None when all of it is hidden."""
        before, change, after = self.before, self.change, self.change.after
        saw = before is not None and may_see(consumer, before)
        sees = after is not None and may_see(consumer, after)
        if saw == (before is not None) and sees == (after is not None):
            return change
        if not saw and not sees:
            return None
        held, row = change.before if saw else None, after if sees else None
        return MemberChange(held, row, change.position, change.commit_ns)


def move(before: KeyState | None, after: KeyState | None, position: Position, commit_ns: int | None) -> Move:
    """Returns the change from one row to another; None where the member is not in the range."""
    held = None if before is None else HeldRow(before.key, before.position)
    return Move(before, MemberChange(held, after, position, commit_ns))


class Backlog:
    """The changes of a range that one subscriber has not taken yet.

    There is at most one per member, so there are never more than the range has had members since the subscriber last
    took one: a slow client costs a bounded amount of memory, and gets the newest.
    """

    __slots__ = ("_changes", "_is_offered", "sees_all")

    def __init__(self, sees_all: bool) -> None:
        """`sees_all`: the consumer may see whatever row is in the range, or has ever been in it."""
        self.sees_all = sees_all
        self._changes: dict[str, MemberChange] = {}
        self._is_offered = False

    def __len__(self) -> int:
        return len(self._changes)

    def restart(self, changes: Iterable[MemberChange]) -> None:
        """Holds these changes and no others."""
        self._changes = {change.key.member: change for change in changes}

    def add(self, change: MemberChange) -> None:
        """Adds a change; it becomes one with the earlier change of its member, if that has not been taken."""
        member = change.key.member
        earlier = self._changes.pop(member, None)
        merged = change if earlier is None else earlier.followed_by(change, int(self._is_offered))
        if merged is not None:
            self._changes[member] = merged

    def take(self) -> MemberChange | None:
        """Removes and returns the oldest change; None when there is none."""
        if not self._changes:
            self._is_offered = False
            return None
        change = self._changes.pop(next(iter(self._changes)))
        self._is_offered = bool(self._changes)
        return change

    def offered(self) -> None:
        """The subscriber knows that there are changes: what it has not taken by now counts as skipped when replaced."""
        self._is_offered = bool(self._changes)
