"""What has happened to a member of a range, for whoever may see it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ws_edge.authorization import Consumer, may_see
from ws_edge.states import Position, StoreKey, Version


class Held(NamedTuple):
    """Which row of a member a subscriber holds: its key, and its position, or None when any older one."""

    key: StoreKey
    position: Position | None


@dataclass(slots=True, eq=False)
class MemberChange:
    """What one subscriber is told of one member. It holds no row but the one that is to be told.

    `frames` keeps the encoded frame of each dialect and form, so that all who are told of a removal share one.
    """

    before: Held | None
    """What the subscriber holds of the member; None when it holds nothing."""
    after: Version | None
    """The row; None when the member has left."""
    position: Position
    commit_ns: int | None = None
    skipped: int = 0
    """How many changes of the member this one stands for beside itself, because the client was slow."""
    snapshot: bool = False
    """Whether it is told because the subscription begins, and not because it happens."""
    frames: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> StoreKey:
        """The key under which the row stands, or stood."""
        known = self.after or self.before
        assert known is not None  # noqa: S101  a member that neither was nor is there has not changed
        return known.key

    def followed_by(self, later: "MemberChange", skipped: int) -> "MemberChange | None":
        """Both as one, of which `skipped` more are not told; None when nothing is left of them."""
        before, after = self.before, later.after
        if before is None and after is None:
            return None
        if before is not None and after is not None and before.position == after.position:
            return None
        return MemberChange(before, after, later.position, later.commit_ns, self.skipped + skipped)


class Move:
    """What has happened to a member, with the rows before and after by which it is known who may see it."""

    __slots__ = ("_change", "_now", "_was")

    def __init__(self, was: Version | None, now: Version | None, position: Position, commit_ns: int | None) -> None:
        """A member that was not in the range before, or is not now, has no row then."""
        self._was = was
        self._now = now
        self._change = MemberChange(None if was is None else Held(was.key, was.position), now, position, commit_ns)

    @property
    def position(self) -> Position:
        """Where it stands in the log."""
        return self._change.position

    def seen_by(self, consumer: Consumer) -> MemberChange | None:
        """What the consumer is told: a row that becomes somebody else's leaves. None when it may see nothing of it."""
        change = self._change
        saw = self._was is not None and may_see(consumer, self._was)
        sees = self._now is not None and may_see(consumer, self._now)
        if saw == (self._was is not None) and sees == (self._now is not None):
            return change
        if not saw and not sees:
            return None
        return MemberChange(
            change.before if saw else None, change.after if sees else None, change.position, change.commit_ns
        )


def entered(version: Version) -> MemberChange:
    """The change by which a member of a snapshot is told."""
    return MemberChange(None, version, version.position, version.commit_ns, snapshot=True)


def resumed(version: Version) -> MemberChange:
    """The change by which a member is told to a subscriber who may have an older row of it."""
    return MemberChange(Held(version.key, None), version, version.position, version.commit_ns, snapshot=True)


def gone(key: StoreKey, position: Position, commit_ns: int | None) -> MemberChange:
    """The change by which the removal of a member is told to a subscriber who may have a row of it."""
    return MemberChange(Held(key, None), None, position, commit_ns, snapshot=True)
