"""Groups the subscriptions of a question that are sent the same changes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ws_edge.model.authorization import Consumer, may_see, seen_by
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState
from ws_edge.watches.moves import Move, order_by_name, order_of
from ws_edge.watches.pending import NOTHING, Batch, Names, Pending
from ws_edge.watches.token import Mask, mask_of, reader_of
from ws_edge.watches.window import Window


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options of a subscription."""

    consumer: Consumer
    interval: float = 0.0
    """The shortest time between two frames, in seconds; 0 sends each change as soon as the edge has it."""
    fields: tuple[str, ...] = ()
    """The fields of a row to send, sorted; empty for all. Changes of other fields are no news."""
    delta: bool = False
    """Whether only changed fields are sent of a row that the client holds."""
    token: str = ""
    """The client's last token; empty to begin with all rows."""
    group_field: str = ""
    """The field that names the group of the place below a row: its changes are news as well. Empty if there is none."""


Identity = tuple[str, tuple[str, ...], bool, str, int]
"""Tells audiences of one window apart."""


def identity_of(question: Question, options: WatchOptions) -> Identity:
    """Returns the identity of the audience to which a subscription belongs."""
    reader = reader_of(question.store, options.consumer)
    return reader, options.fields, options.delta, options.group_field, question.limit


@dataclass(slots=True, eq=False)
class Audience:
    """Subscriptions of one question that ask for the same fields, and with consumers that see the same rows."""

    window: Window
    """The rows that are searched for theirs."""
    question: Question
    options: WatchOptions
    """Those of one of them, whose consumer sees the same as all."""
    members: int = field(default=0, init=False)
    """The number of subscriptions."""
    mask: Mask = field(init=False)
    """The masks of their tokens."""
    _shown: dict[str, KeyState] | None = field(default=None, init=False)
    """The rows by name that members are shown, where the window may have more that they could see; else None."""

    def __post_init__(self) -> None:
        self.mask = mask_of(self.question, self.options.fields, self.options.consumer)
        if self.window.question.limit > self.question.limit:
            self._shown = {row.key.member: row for row in self.rows()}

    def seen(self, row: KeyState | None) -> KeyState | None:
        """Returns the row as its members see it; None when they are not shown it."""
        consumer = self.options.consumer
        if row is None or not may_see(consumer, row) or (self._shown is not None and row.key.member not in self._shown):
            return None
        return seen_by(consumer, row)

    def rows(self) -> Iterator[KeyState]:
        """Returns the rows that its members see now: the first ones of the window, up to the limit."""
        consumer = self.options.consumer
        rows = (seen_by(consumer, row) for row in tuple(self.window.rows.values()) if may_see(consumer, row))
        return islice(rows, self.question.limit)

    def moves(self, moves: Sequence[Move]) -> Sequence[Move]:
        """Returns the changes of the rows that its members are shown, now that the window has changed by `moves`."""
        consumer = self.options.consumer
        if not self.question.store.shows_changes(consumer):
            moves = sorted(moves, key=order_by_name)
        if self._shown is None:
            return moves
        if not any(True in move.is_seen(consumer) for move in moves):
            return ()
        before, self._shown = self._shown, {row.key.member: row for row in self.rows()}
        position = {move.key: move.position for move in moves}
        shown = self._shown
        names = (before.keys() ^ shown.keys()) | (position.keys() & before.keys())
        newest = max(position.values())  # of rows that others have moved
        own = [Move(name, before.get(name), shown.get(name), position.get(name, newest)) for name in names]
        return sorted(own, key=order_of if self.question.store.shows_changes(consumer) else order_by_name)

    def change(self, move: Move, *, has_base: bool) -> tuple[Names, bool] | None:
        """Returns a row's changed fields, and whether a client may hold the row; None if members see no change.

        Without a base, the client holds another version than the one before the change.
        """
        options = self.options
        saw, sees = move.is_seen(options.consumer)
        if not (saw or sees):
            return None
        is_compared = saw and sees and (options.delta or options.fields or self.question.store.private)
        names = move.names(options.consumer) if is_compared else None
        if names and has_base and options.fields:
            names = names.intersection((*options.fields, options.group_field))
        if names is not None and not names:
            return None  # nor is an error by which it could not be shown another one
        return names if has_base else None, saw or not has_base

    def batch(self, moves: Iterable[Move]) -> Batch:
        """Returns the changes for members without waiting entries; NOTHING if members see no change."""
        pending = Pending()
        for move in moves:
            if (change := self.change(move, has_base=True)) is not None:
                pending.add(move.key, *change)
        return Batch(pending.entries) if pending else NOTHING
