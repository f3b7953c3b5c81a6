"""The keys of rows that one subscription still has to send: in which order, and how much of each row."""

from collections.abc import Iterable
from dataclasses import dataclass, field

Names = frozenset[str] | None
"""Fields of a row that have changed; None for the whole row."""


@dataclass(slots=True, eq=False)
class Entry:
    """A key that waits. The row itself is looked up when it is sent, so that it is the newest."""

    number: int
    """Entries are numbered in the order in which they were added."""
    names: Names
    """Fields that have changed since the row that the client holds; None when it is to get the whole row."""
    held: bool
    """Whether the client may hold a row under the key."""
    snapshot: bool
    """Whether it waits because the subscription begins, and not because it changed now."""
    skipped: int = 0
    """How many versions were left out because the client read slowly."""


@dataclass(slots=True, eq=False)
class Pending:
    """Entries by key, so that a slow client costs a bounded amount of memory.

    They are taken in rounds, each of the keys that waited when it began: so each round ends, however often keys change.
    """

    _entries: dict[str, Entry] = field(default_factory=dict, init=False)
    _last: int = field(default=0, init=False)
    """The number of the newest entry."""
    _round: int = field(default=0, init=False)
    """The number of the last entry of the round."""
    _is_offered: bool = field(default=False, init=False)
    _baseless: set[str] = field(default_factory=set, init=False)
    """Keys of which the client got an error: the next version is sent whole."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def begin(self, keys: Iterable[str], held: bool) -> None:
        """Adds the rows that a subscription begins with, each whole; `held` says whether the client may hold them."""
        for key in keys:
            self._last += 1
            self._entries[key] = Entry(self._last, None, held, snapshot=True)

    def add(self, key: str, names: Names, held: bool) -> bool:
        """Adds a change; names unite with those of the entry that waits, which stays where it is.

        Returns whether a version that the subscriber knows of was left out by it.
        """
        entry = self._entries.get(key)
        if entry is None:
            self._last += 1
            names = None if key in self._baseless else names
            self._entries[key] = Entry(self._last, names, held, snapshot=False)
            return False
        entry.names = None if entry.names is None or names is None else entry.names | names
        entry.snapshot = False
        entry.skipped += self._is_offered
        return self._is_offered

    def begin_round(self) -> None:
        """Begins a round of the keys that wait now."""
        self._round = self._last

    def has_round(self) -> bool:
        """Whether a key of the round waits."""
        first = next(iter(self._entries.values()), None)
        return first is not None and first.number <= self._round

    def take(self) -> tuple[str, Entry] | None:
        """Removes and returns the oldest key of the round; None when the round has ended."""
        if not self.has_round():
            return None
        key = next(iter(self._entries))
        self._baseless.discard(key)
        entry = self._entries.pop(key)
        self._is_offered = bool(self._entries)
        return key, entry

    def offered(self) -> None:
        """Notes that the subscriber knows of the entries: changes of theirs count as skipped from now on."""
        self._is_offered = bool(self._entries)

    def failed(self, key: str) -> None:
        """Notes that the row was not sent, so that the next version is whole."""
        self._baseless.add(key)
        if (entry := self._entries.get(key)) is not None:
            entry.names = None
