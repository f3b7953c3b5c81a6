"""Groups the subscriptions of a question that are sent the same changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ws_edge.model.authorization import Consumer, may_see, seen_by
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState
from ws_edge.watches.moves import Move
from ws_edge.watches.pending import NOTHING, Batch, Names, Pending
from ws_edge.watches.token import Mask, mask_of, reader_of

Identity = tuple[str, tuple[str, ...], bool, str]
"""Tells audiences of one question apart."""


def identity_of(
    question: Question, consumer: Consumer, fields: tuple[str, ...], *, delta: bool, group_field: str
) -> Identity:
    """Returns the identity of the audience to which a subscription belongs."""
    return reader_of(question.store, consumer), fields, delta, group_field


@dataclass(slots=True, eq=False)
class Audience:
    """Subscriptions of one question that ask for the same fields, and with consumers that see the same rows."""

    question: Question
    consumer: Consumer
    """The consumer of one of them; all see the same."""
    fields: tuple[str, ...]
    delta: bool
    group_field: str
    """As in WatchOptions."""
    members: int = field(default=0, init=False)
    """The number of subscriptions."""
    mask: Mask = field(init=False)
    """The mask of their tokens."""

    def __post_init__(self) -> None:
        self.mask = mask_of(self.question, self.fields, self.consumer)

    @property
    def identity(self) -> Identity:
        return identity_of(self.question, self.consumer, self.fields, delta=self.delta, group_field=self.group_field)

    def seen(self, row: KeyState | None) -> KeyState | None:
        """Returns the row as its members see it; None when they may not see it."""
        return seen_by(self.consumer, row) if row is not None and may_see(self.consumer, row) else None

    def change(self, move: Move, *, has_base: bool) -> tuple[Names, bool] | None:
        """Returns a row's changed fields, and whether a client may hold the row; None if members see no change.

        Without a base, the client holds another version than the one before the change.
        """
        saw, sees = move.is_seen(self.consumer)
        if not (saw or sees):
            return None
        is_compared = self.delta or self.fields or self.question.store.private
        if not (saw and sees and has_base and is_compared):
            return None, saw or not has_base
        names = move.names(self.consumer)
        if names is not None and self.fields:
            names = names.intersection((*self.fields, self.group_field))
        return None if names is not None and not names else (names, True)

    def batch(self, moves: Iterable[Move]) -> Batch:
        """Returns the changes for members without waiting entries; NOTHING if members see no change."""
        pending = Pending()
        for move in moves:
            if (change := self.change(move, has_base=True)) is not None:
                pending.add(move.key, *change)
        return Batch(pending.entries) if pending else NOTHING
