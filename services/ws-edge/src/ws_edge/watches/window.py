"""The known rows of a question, and the removals that resuming subscriptions need."""

from collections import OrderedDict
from dataclasses import dataclass, field
from operator import attrgetter, gt, lt

from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Position, StoreKey, is_news
from ws_edge.upstream.queries import RangeResult
from ws_edge.watches.moves import Move, order_of
from ws_edge.watches.token import Resumption

BY_POSITION = attrgetter("position")

STALE_EPOCH_LIMIT = 3
"""After so many answers in a row, a retired epoch becomes the current one again."""


@dataclass(slots=True, eq=False)
class Window:
    """At most `limit` rows. The upstream query asks for the changes in the whole range.

    When the window is full and the range goes on behind it, the rows behind it are not known: if a known row leaves
    then, the window is read anew. The removal of a key is never forgotten.
    """

    question: Question
    rows: dict[str, KeyState] = field(default_factory=dict, init=False)
    """The rows by name, which is empty for a key."""
    position: Position | None = field(default=None, init=False)
    """The position up to which the rows are known; None when there has been no answer. That of a key is its row's."""
    through: Position | None = field(default=None, init=False)
    """Up to where a replica had read the partition when it had nothing newer; of a range, that is `position`."""
    has_more: bool = field(default=False, init=False)
    """Whether the range has rows behind the window."""
    is_outdated: bool = field(default=True, init=False)
    """Whether the window must be read anew."""
    retired_epochs: frozenset[int] = field(default=frozenset(), init=False)
    """Former epochs: a replica that still answers with one of them lags."""
    stale_answers: int = field(default=0, init=False)
    """The number of answers in a row from retired epochs."""
    _doubled: set[str] = field(default_factory=set, init=False)
    """Rows last seen under two keys at once: when one is removed, the window is read anew for the other."""
    _removals: OrderedDict[StoreKey, KeyState] = field(default_factory=OrderedDict, init=False)
    _removals_after: int = field(default=0, init=False)
    """All removals after this offset are remembered."""

    def accept(self, result: RangeResult) -> list[Move]:
        """Applies a result unless it is older than the rows; returns the changes of rows, in their order."""
        if not self._is_current(result.position):
            # A replica that lags still knows the removals before the remembered ones.
            is_same_epoch = self.position is not None and self.position.epoch == result.position.epoch
            if is_same_epoch and result.removals_complete and result.position.offset >= self._removals_after:
                self._remember_removals(result)
            return []
        before = dict(self.rows)
        if self.position is None:
            self._removals.clear()
        if result.whole:
            self._replace(result)
        else:
            self._apply(result)
        self._remember_removals(result)
        self.position = self.through = result.position
        if self.question.is_key and result.through is not None:
            self.through = max(self.position, result.through)
        return self._moves(before, result)

    def unchanged(self, position: Position | None) -> None:
        """Notes that a replica of the current epoch has nothing newer, up to `position` if it names one."""
        self.stale_answers = 0
        if position is None or self.position is None or self.position.epoch != position.epoch:
            return
        self.through = max(self.through or position, position)
        if not self.question.is_key:
            self.position = self.through

    def can_begin(self, token: Resumption | None) -> bool:
        """Returns whether a subscription with everything through the token can begin with the known rows."""
        return self.position is not None and not self.reaches_back(token) and not self.is_behind(token)

    def is_behind(self, token: Resumption | None) -> bool:
        """Returns whether a subscription has to wait for an answer as new as the rows that its client may hold."""
        if token is None or self.position is None or self.through is None:
            return False
        return token.position.epoch == self.through.epoch and self.through < token.needed

    def reaches_back(self, token: Resumption | None) -> bool:
        """Returns whether earlier removals must be read before a subscription can resume."""
        if token is None or self.position is None:
            return token is not None
        return token.position.epoch == self.position.epoch and token.position.offset < self._removals_after

    def missed_after(self, after: Position) -> list[str] | None:
        """Returns the names of the rows that have changed or left after a position, in the order of these changes.

        None when they are not certain: removals may have been forgotten, or the range may have more rows than the
        limit, or have had more at the position.
        """
        gone = {each.key.member: each for each in self._removals.values() if each.position > after}
        is_certain = (
            self.position is not None
            and self.position.epoch == after.epoch
            and after.offset >= self._removals_after
            and not self.has_more
            and len(self.rows) + sum(each.position > after for each in self._removals.values()) <= self.question.limit
        )
        if not is_certain:
            return None
        changed = {name: row for name, row in self.rows.items() if row.position > after}
        return sorted(
            changed.keys() | (gone.keys() - self.rows.keys()),
            key=lambda name: (changed.get(name) or gone[name]).position,
        )

    def _replace(self, result: RangeResult) -> None:
        previous, self.rows, self._doubled = self.rows, {}, set()
        for state in result.states:
            member, epoch = state.key.member, state.position.epoch
            held, other = previous.get(member), self.rows.get(member)
            if held is not None and held.key != state.key:
                held = None
            if other is not None:
                self._doubled.add(member)
            comparable = [row for row in (held, other, state) if row is not None and row.position.epoch == epoch]
            self.rows[member] = max(comparable, key=BY_POSITION)
        self.has_more, self.is_outdated = result.more, False

    def _apply(self, result: RangeResult) -> None:
        limit = self.question.limit
        orders = [_order(row) for row in self.rows.values()] if self.has_more else []
        for state in sorted([*result.states, *result.removals], key=BY_POSITION):
            member = state.key.member
            row = self.rows.get(member)
            if row is not None and row.position >= state.position:
                continue
            if state.row is not None:
                if row is not None and row.key != state.key:
                    self._doubled.add(member)
                self.rows[member] = state
            elif row is not None and row.key == state.key:
                del self.rows[member]
                self.is_outdated = self.is_outdated or member in self._doubled
            else:
                self._doubled.discard(member)
        ordered = sorted(self.rows.values(), key=_order, reverse=self.question.reverse)
        if orders:
            last, is_behind = (min(orders), lt) if self.question.reverse else (max(orders), gt)
            ordered = [row for row in ordered if not is_behind(_order(row), last)]
            self.is_outdated = self.is_outdated or len(ordered) < limit
        self.has_more = self.has_more or len(ordered) > limit
        self.rows = {row.key.member: row for row in ordered[:limit]}

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
        # Who has missed more than the range may have rows is sent all of them: see missed_after.
        while len(self._removals) > self.question.limit:
            _, oldest = self._removals.popitem(last=False)
            self._removals_after = max(self._removals_after, oldest.position.offset)

    def _moves(self, before: dict[str, KeyState], result: RangeResult) -> list[Move]:
        removed = {removal.key: removal.position for removal in result.removals}
        moves = [
            Move(name, was, None, removed.get(was.key, result.position))
            for name, was in before.items()
            if name not in self.rows
        ]
        for name, row in self.rows.items():
            was = before.get(name)
            if was is not row and (was is None or was.position.epoch != row.position.epoch or is_news(was, row)):
                # A row that came up from behind the window has changed long ago: it is news as of this result.
                position = result.position if was is None and result.whole else row.position
                moves.append(Move(name, was, row, position))
        return sorted(moves, key=order_of)

    def _is_current(self, position: Position) -> bool:
        """Returns whether an answer as of the position is no older than the window; enters its epoch if that is new.

        Epochs have no order, so one may be left by mistake: a retired epoch that keeps coming must be the right one.
        """
        if self.position is None:
            return True
        if position.epoch in self.retired_epochs:
            self.stale_answers += 1
            if self.stale_answers < STALE_EPOCH_LIMIT:
                return False
        self.stale_answers = 0
        if position.epoch == self.position.epoch:
            return position >= self.position
        self.retired_epochs = (self.retired_epochs | {self.position.epoch}) - {position.epoch}
        self.position = None
        return True


def _order(row: KeyState) -> tuple[bytes, bytes]:
    return row.key.sort.encode(), row.key.member.encode()
