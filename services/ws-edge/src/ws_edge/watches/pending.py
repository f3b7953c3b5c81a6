"""The keys of rows that one subscription still has to send, in their order, with the fields to send."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ws_edge.model.states import Position

Names = frozenset[str] | None
"""Fields of a row that have changed; None for the whole row."""


class Entry(NamedTuple):
    """A waiting key. Its row is looked up when it is sent, so that the newest version is sent."""

    names: Names
    """The fields that have changed since the version that the client holds; None to send the whole row."""
    held: bool
    """Whether the client may hold a row under the key."""
    snapshot: bool = False
    """Whether it waits because the subscription begins, and not because it changed now."""
    skipped: int = 0
    """How many versions were left out because the client read slowly."""


@dataclass(slots=True, eq=False)
class Batch:
    """Changes that many subscriptions share, and the news that the first of them has made."""

    entries: dict[str, Entry] = field(default_factory=dict)
    news: dict[Any, Any] = field(default_factory=dict)
    """The news as of `position`, by codec and view."""
    position: Position | None = None

    def news_at(self, position: Position) -> dict[Any, Any]:
        """Returns the news as of the position, and forgets those of another one."""
        if self.position is not position:
            self.position, self.news = position, {}
        return self.news


NOTHING = Batch()


@dataclass(slots=True, eq=False)
class Pending:
    """Entries by key, so that a slow client costs a bounded amount of memory.

    Entries are taken in rounds. A round has the keys that waited when it began, so it ends however often keys change.
    Subscriptions with the same entries share a batch, until one of them takes a part of it or gets further entries.
    """

    batch: Batch | None = field(default=NOTHING, init=False)
    """None when the entries are its own."""
    entries: dict[str, Entry] = field(default_factory=lambda: NOTHING.entries, init=False)
    _round: int = field(default=0, init=False)
    """How many of the oldest entries belong to the round."""
    _is_offered: bool = field(default=False, init=False)
    _baseless: frozenset[str] = field(default=frozenset(), init=False)
    """Keys for which the client got an error: the next version is sent whole."""

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    @property
    def is_clear(self) -> bool:
        """Whether nothing waits, and no row was replaced by an error."""
        return not self.entries and not self._baseless

    def share(self, batch: Batch) -> None:
        """Replaces the entries, of which none may wait, by those of a batch. NOTHING is the empty batch."""
        self.batch, self.entries, self._is_offered = batch, batch.entries, False

    def begin(self, keys: Iterable[str], held: bool) -> None:
        """Adds the rows with which a subscription begins, each whole. `held` is whether the client may hold them."""
        self._own().update((key, Entry(None, held, snapshot=True)) for key in keys)

    def add(self, key: str, names: Names, held: bool) -> bool:
        """Adds a change. Its names are merged into a waiting entry of the key, which keeps its place in the order.

        Returns whether this replaces a version of which the subscriber was notified.
        """
        entries = self._own()
        entry = entries.get(key)
        if entry is None:
            entries[key] = Entry(None if key in self._baseless else names, held)
            return False
        names = None if entry.names is None or names is None else entry.names | names
        entries[key] = Entry(names, entry.held, False, entry.skipped + self._is_offered)
        return self._is_offered

    def has_base(self, key: str) -> bool:
        """Returns whether the client has the row as it was sent, and no error in its place."""
        return key not in self._baseless

    def begin_round(self) -> None:
        """Begins a round of the keys that wait now."""
        self._round = len(self.entries)

    def has_round(self) -> bool:
        """Returns whether a key of the round waits."""
        return self._round > 0

    def take(self) -> tuple[str, Entry] | None:
        """Removes and returns the oldest key of the round; None when the round has ended."""
        if not self._round:
            return None
        entries = self._own()
        key = next(iter(entries))
        entry = entries.pop(key)
        self._round -= 1
        if self._baseless:
            self._baseless -= {key}
        self._is_offered = bool(entries)
        if not entries:
            self.share(NOTHING)
        return key, entry

    def offered(self) -> None:
        """Notes that the subscriber knows of the entries: changes of theirs count as skipped from now on."""
        self._is_offered = bool(self.entries)

    def failed(self, key: str) -> None:
        """Notes that the row was not sent, so that the next version is whole."""
        self._baseless |= {key}
        if (entry := self.entries.get(key)) is not None:
            self._own()[key] = entry._replace(names=None)

    def _own(self) -> dict[str, Entry]:
        if self.batch is not None:
            self.batch, self.entries = None, dict(self.entries)
        return self.entries
