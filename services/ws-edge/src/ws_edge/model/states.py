"""The values that pass through the edge: keys, positions, and the states of keys."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from google.protobuf.message import Message

from ws_edge.errors import UnreadableRowError
from ws_edge.model.private_fields import PrivateRow


class StoreKey(NamedTuple):
    """One key of one store; `sort` and `member` are empty in stores with one value per group."""

    store: str
    group: str
    sort: str = ""
    member: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


class RangeKey(NamedTuple):
    """At most `limit` members of a group, the first or the last, from `sort_from` to below `sort_to`; empty is open."""

    store: str
    group: str
    sort_from: str
    sort_to: str
    limit: int
    reverse: bool

    def __str__(self) -> str:
        return f"{self.store}/{self.group}/[{self.sort_from}..{self.sort_to})"


AnyKey = StoreKey | RangeKey
"""What can be watched."""

Path = tuple[str, ...]
"""The rows of a query that lead to a range, by their names."""


class Place(NamedTuple):
    """Where in which query a range or key is watched."""

    query: str
    path: Path


def rows_of(key: AnyKey) -> int:
    """How many rows the edge may have to hold for the key or range."""
    return key.limit if isinstance(key, RangeKey) else 1


def name_of(key: StoreKey) -> str:
    """The name of a row in a path."""
    return key.member or key.group


class Position(NamedTuple):
    """The record that was last applied to a key. Positions of different epochs cannot be compared."""

    epoch: int
    offset: int


Form = tuple[Any, ...]
"""How a row is encoded: the encoding, the view, and the changed fields."""


class UnreadableRow(NamedTuple):
    """Takes the place of a row that is not of its store's message, so that the key has a row for all but readers."""

    reason: str
    """What the parser says."""


@dataclass(slots=True, eq=False)
class KeyState:
    """The state of a key as of a position. `row` is None when the key holds nothing."""

    key: StoreKey
    position: Position
    row: Any = None
    """The row as a Protobuf message of the store, or UnreadableRow; only codecs and REST read its fields."""
    owner: str = ""
    """What OwnerRule.owner_of says of the row; empty when there is no row."""
    deleted: bool = False
    """Whether a deletion is known, which tells a row that is gone from one that never was."""
    commit_ns: int | None = None
    """When the change was committed at the source, in nanoseconds since 1970; None when that is not known."""
    size: int = 0
    """The bytes of the encoded row."""
    absent_after: Position | None = None
    """The position since which the key is known to be absent; None when that is not certain, or there is a row."""
    lag_ms: int = 0
    """For how long this may have been out of date when it was last read, in milliseconds; 0 for a short time."""
    document: Any = None
    """The row as JSON, once it was asked for; a row of JSON that is null has none."""
    bodies: dict[Form, bytes] = field(default_factory=dict)
    """The encoded row by its form, so that all who are sent the same share one."""
    private: PrivateRow | None = None
    """Of a row with private fields: all of it. `row` is then what everyone may see, so that what forgets to ask what
    its consumer may see shows too little."""
    views: dict[str, "KeyState"] = field(default_factory=dict)
    """This state as those see it who may see more, so that each of them has one frame as well."""

    def seen_by(self, viewer: str) -> "KeyState":
        """The state as the owner of private fields sees it; for others this one."""
        if self.private is None or viewer not in self.private.owners:
            return self
        return self._view(viewer, lambda private: private.seen_by(viewer))

    def seen_whole(self) -> "KeyState":
        """The state as staff see it."""
        return self._view("\0staff", lambda private: private.full)

    @property
    def is_unreadable(self) -> bool:
        return isinstance(self.row, UnreadableRow)

    def check_readable(self) -> None:
        """Raises UnreadableRowError, which names the key, when the row cannot be read."""
        if isinstance(self.row, UnreadableRow):
            raise UnreadableRowError(f"the row of {self.key} cannot be read, tell the operators: {self.row.reason}")

    def note_lag(self, lag_ms: int) -> None:
        """Notes for how long it may have been out of date when it was last read."""
        for state in (self, *self.views.values()):
            state.lag_ms = lag_ms

    def _view(self, viewer: str, row_of: Callable[[PrivateRow], Message]) -> "KeyState":
        if self.private is None:
            return self
        view = self.views.get(viewer)
        if view is None:
            row = row_of(self.private)
            view = self.views[viewer] = replace(self, row=row, private=None, document=None, bodies={}, views={})
        return view

    def is_newer_than(self, after: Position | None) -> bool:
        """Whether this is news to somebody who has read everything up to `after`."""
        needed = self.absent_after or self.position
        return after is None or after.epoch != needed.epoch or after.offset < needed.offset


def is_news(latest: KeyState, state: KeyState) -> bool:
    """Whether `state`, of the same epoch, tells somebody who knows `latest` anything.

    The position of a key that was never there moves with its partition, and a deletion is forgotten after a while:
    neither is news to somebody who knows that there is no row. A version that a replay wrote again has a later position
    at some replicas, and is no news either.
    """
    if state.position.offset <= latest.position.offset:
        return False
    if state.row is None:
        return latest.row is not None or (state.deleted and not latest.deleted)
    if state.commit_ns is None or state.commit_ns != latest.commit_ns or state.row != latest.row:
        return True
    return state.private is not None and (latest.private is None or state.private.full != latest.private.full)
