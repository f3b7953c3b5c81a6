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


Path = tuple[str, ...]
"""The rows of a query that lead to a range, by their keys; the key of the only row of a group is empty."""


class Position(NamedTuple):
    """The record that was last applied to a key. Positions of different epochs cannot be compared."""

    epoch: int
    offset: int


Form = tuple[Any, ...]
"""How a row is encoded: the encoding, the view, and the changed fields."""


class UnreadableRow(NamedTuple):
    """Takes the place of a row that cannot be read, so that the key has a row for all but readers."""

    reason: str
    error: type[UnreadableRowError] = UnreadableRowError
    """What its readers get."""


@dataclass(slots=True, eq=False)
class KeyState:
    """The state of a key as of a position. `row` is None when the key holds nothing."""

    key: StoreKey
    position: Position
    row: Any = None
    """The row as a Protobuf message of the store, or UnreadableRow; only codecs and REST read its fields."""
    owner: str = ""
    """The owner of the row, by OwnerRule.owner_of; empty when there is no row."""
    commit_ns: int | None = None
    """When the change was committed at the source, in nanoseconds since 1970; None when that is not known."""
    document: Any = None
    """The row as JSON, once it was asked for; a row of JSON that is null has none."""
    bodies: dict[Form, bytes] = field(default_factory=dict)
    """The encoded row by its form, so that all who are sent the same share one."""
    private: PrivateRow | None = None
    """Of a row with private fields: all of it. `row` is then the part for everyone, so that code which forgets to
    check the rights of its consumer shows too little."""
    views: dict[str, "KeyState"] = field(default_factory=dict)
    """This state as those see it who may see more, so that each of them has one frame as well."""

    def seen_by(self, viewer: str) -> "KeyState":
        """Returns the state as the owner of private fields sees it; for others this one."""
        if self.private is None or viewer not in self.private.owners:
            return self
        return self._view(viewer, lambda private: private.seen_by(viewer))

    def seen_whole(self) -> "KeyState":
        """Returns the state as staff see it."""
        return self._view("\0staff", lambda private: private.full)

    @property
    def is_unreadable(self) -> bool:
        return isinstance(self.row, UnreadableRow)

    def check_readable(self) -> None:
        """Raises UnreadableRowError, which names the key, when the row cannot be read."""
        if isinstance(self.row, UnreadableRow):
            raise self.row.error(f"the row of {self.key} cannot be read, tell the operators: {self.row.reason}")

    def _view(self, viewer: str, row_of: Callable[[PrivateRow], Message]) -> "KeyState":
        if self.private is None:
            return self
        view = self.views.get(viewer)
        if view is None:
            row = row_of(self.private)
            view = self.views[viewer] = replace(self, row=row, private=None, document=None, bodies={}, views={})
        return view


def is_news(latest: KeyState, state: KeyState) -> bool:
    """Returns whether a row, of the same epoch, is new to a reader of the row `latest`.

    A version that a replay wrote again has a later position at some replicas, and is no news.
    """
    if state.position.offset <= latest.position.offset:
        return False
    if state.commit_ns is None or state.commit_ns != latest.commit_ns or state.row != latest.row:
        return True
    return state.private is not None and (latest.private is None or state.private.full != latest.private.full)
