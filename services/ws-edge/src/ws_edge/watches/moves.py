"""Changes of rows in a window, as each consumer sees them."""

from dataclasses import dataclass, field

from ws_edge.model.authorization import EVERYONE, Consumer, may_see, seen_by
from ws_edge.model.documents import changed_names
from ws_edge.model.states import KeyState, Position
from ws_edge.watches.pending import Names


@dataclass(slots=True, eq=False)
class Move:
    """A row that has entered a window, changed in it or left it, as of a position."""

    key: str
    """The name of the row in its group; empty for a key."""
    before: KeyState | None
    after: KeyState | None
    position: Position
    _seen_by_all: tuple[bool, bool] | None = field(default=None, init=False)
    """The result of `is_seen`, if it is the same for every consumer."""
    _names: dict[tuple[int, int], Names] = field(default_factory=dict, init=False)
    """The names of changed fields, by the two views compared. Consumers who see the same share them."""

    def __post_init__(self) -> None:
        if all(state is None or state.owner == EVERYONE for state in (self.before, self.after)):
            self._seen_by_all = self.before is not None, self.after is not None

    def is_seen(self, consumer: Consumer) -> tuple[bool, bool]:
        """Returns whether the consumer may see the row before and the row after the change."""
        return self._seen_by_all or (_is_seen(consumer, self.before), _is_seen(consumer, self.after))

    def names(self, consumer: Consumer) -> Names:
        """Returns the changed fields, as the consumer sees them; None when the whole row counts as new.

        A row with another sort value, or one that cannot be read, counts as new.
        """
        if self.before is None or self.after is None or self.before.key != self.after.key:
            return None
        if self.before.is_unreadable or self.after.is_unreadable:
            return None
        before, after = seen_by(consumer, self.before), seen_by(consumer, self.after)
        views = id(before), id(after)
        if views not in self._names:
            self._names[views] = changed_names(before.row, after.row)
        return self._names[views]


def order_of(move: Move) -> tuple[Position, bool, str]:
    """Returns the place of a change among others: departures go before the rows of their position."""
    return move.position, move.after is not None, move.key


def order_by_name(move: Move) -> tuple[bool, str]:
    """Returns its place where it must not show when rows were changed."""
    return move.after is not None, move.key


def _is_seen(consumer: Consumer, state: KeyState | None) -> bool:
    return state is not None and may_see(consumer, state)
