"""The rows of one partition, with the offset to resume from in the same atomic writes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, islice, repeat, takewhile
from operator import and_
from pathlib import Path

from query_service.storage import store_keys
from query_service.storage.engine import Engine, Skip
from query_service.storage.record import Replaced
from query_service.storage.spread import Spread
from query_service.storage.store_keys import (
    DELETED,
    DELETED_PREFIX,
    EXPIRES_PREFIX,
    FLAGS_AT,
    MARKER_PREFIX,
    MARKERS,
    MAX_MISPLACED,
    MAX_OFFSET,
    MISPLACED_PREFIX,
    NUMBER,
    REPLACED_PREFIX,
    ROWS_FROM,
    ROWS_TO,
)
from query_service.storage.stores_file import StoreDefinition

_SEEN_PER_RECORD = 16  # bytes: one new key in thirty is looked for
_MAX_SEEN_BITS = 22  # 4 MB: beyond 260,000 records it is one in fewer


class PartitionStore:
    """One partition. Any thread may read; one thread at a time may write. Raises as its engine does.

    After `begin_restore`, writes are fast and not durable: after a kill it is as it was some writes before, with the
    offset of that time, and resumes from there. `finish_restore` ends that.
    """

    def __init__(self, engine: Engine, definition: StoreDefinition) -> None:
        self._engine = engine
        self._expires = definition.retain is not None
        self._history = definition.history
        self._has_markers = any(True for _ in engine.scan(*MARKERS))
        self.restoring = False
        self._seen: bytearray | None = None  # while an empty store is restored: by hash, the keys that it may have
        self.misplaced = self._noted_misplaced()
        """The row keys that are known to belong into another partition; replaced as a whole, never changed."""
        notes = engine.get_many([store_keys.NEXT_KEY, store_keys.PURGED_KEY, store_keys.CURRENT_KEY])
        self.next_offset = store_keys.number_of(notes[0])
        self.purged_offset = store_keys.number_of(notes[1], -1)
        self.current_ms = store_keys.number_of(notes[2])

    def get(self, key: bytes) -> bytes | None:
        """Returns the stored value of a row on the event loop, as `get_many` does. Raises ColdError; see Engine.get."""
        value = self._engine.get(key)
        return self._engine.get(MARKER_PREFIX + key) if value is None and self._has_markers else value

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns the stored values of rows, in their order; a deletion marker is one, too."""
        values = self._engine.get_many(keys)
        if not self._has_markers or None not in values:
            return values
        absent = [MARKER_PREFIX + key for key, value in zip(keys, values, strict=True) if value is None]
        markers = iter(self._engine.get_many(absent))
        return [next(markers) if value is None else value for value in values]

    def replaced_by(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns the stored values of rows that are about to be written. For the thread that writes.

        A look takes a sixth of a restore, and nearly all keys are new to an empty store: only those with the hash of
        an earlier one are looked for.
        """
        seen = self._seen
        if seen is None:
            return self.get_many(keys)
        slots = list(map(and_, map(hash, keys), repeat(len(seen) - 1)))
        known = list(map(seen.__getitem__, slots))
        for slot in slots:
            seen[slot] = 1
        if not any(known):
            return [None] * len(keys)
        values = iter(self.get_many(list(compress(keys, known))))
        return [next(values) if each else None for each in known]

    def is_at_hand(self, keys: list[bytes]) -> bool:
        """Returns whether `get_many` of these keys waits for no disk."""
        return self._engine.is_at_hand(keys)

    def scan(
        self, first: bytes, end: bytes, *, reverse: bool = False, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and stored values of the rows with first <= key < end that are not skipped, as of one moment."""
        return self._engine.scan(first, end, reverse=reverse, skip=skip)

    def deletions(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and deletion markers with first <= key < end, as `scan` does; some may have a newer row."""
        for key, marker in self._engine.scan(MARKER_PREFIX + first, MARKER_PREFIX + end):
            yield key[len(MARKER_PREFIX) :], marker

    def older_versions(self, key: bytes, before_offset: int) -> Iterator[bytes]:
        """Yields the versions that were replaced, as they were stored, from the newest before this offset on."""
        first, end = store_keys.version_key(key, 0), store_keys.version_key(key, before_offset)
        return (value for _, value in self._engine.scan(first, end, reverse=True))

    def write(
        self,
        rows: Mapping[bytes, bytes],
        next_offset: int,
        arrived_ms: int,
        replaced: Sequence[Replaced] = (),
        misplaced: Sequence[bytes] = (),
    ) -> None:
        """Stores rows, versions in the order of their replacement, and the offset after them, all or nothing.

        Deletion markers among the rows count from `arrived_ms` on. `misplaced` names the rows that belong into another
        partition: those that exist are noted, and the notes of deleted ones are removed.
        """
        puts = sorted(rows.items())  # RocksDB takes neighbours in a fifth less time
        deletes: list[bytes] = []
        if deleted := [row for row in puts if row[1][FLAGS_AT] & DELETED]:
            self._has_markers = True
            puts = [row for row in puts if not row[1][FLAGS_AT] & DELETED]
            puts += [(MARKER_PREFIX + key, marker) for key, marker in deleted]
            puts += [_due(DELETED_PREFIX, arrived_ms, *row) for row in deleted]
            deletes += [key for key, _ in deleted]
        if self._expires:
            puts += _expiries(rows)
        if replaced:
            deletes += self._keep_versions(replaced, arrived_ms, puts)
        puts.append((store_keys.NEXT_KEY, NUMBER.pack(next_offset)))
        known = self._note_misplaced(misplaced, rows, puts, deletes) if misplaced else self.misplaced
        self._engine.write(puts, deletes, durable=not self.restoring)
        self.next_offset, self.misplaced = next_offset, known

    def check_spread(self, spread: Spread) -> None:
        """Notes which rows are misplaced, by reading all keys unless they were checked by the same spread before."""
        if self._engine.get_many([store_keys.SPREAD_KEY]) == [spread.note]:
            return
        rows = self._engine.scan(ROWS_FROM, ROWS_TO)
        keys = frozenset(islice((key for key, _ in rows if spread.misplaced([key])), MAX_MISPLACED))
        puts = [(MISPLACED_PREFIX + key, b"") for key in keys]
        gone = [MISPLACED_PREFIX + key for key in self.misplaced - keys]
        self._engine.write([*puts, (store_keys.SPREAD_KEY, spread.note)], gone)
        self.misplaced = keys

    def note_current(self, wall_ms: int) -> None:
        """Notes that everything had been applied at this time; it decides whether a restart may resume from here."""
        self._note(store_keys.CURRENT_KEY, wall_ms)
        self.current_ms = wall_ms

    def note_purged(self, offset: int) -> None:
        """Notes that deletions up to and including this offset may be unknown here, because they were never read."""
        self.purged_offset = max(self.purged_offset, offset)
        self._note(store_keys.PURGED_KEY, self.purged_offset)

    def begin_restore(self, records: int) -> None:
        """Makes writes fast until `finish_restore`, after about so many records."""
        if not self.next_offset:
            self._seen = bytearray(1 << min(_MAX_SEEN_BITS, (_SEEN_PER_RECORD * records).bit_length()))
        self.restoring = True

    def finish_restore(self) -> None:
        """Makes the restored rows durable, and every write from now on."""
        if self.restoring:
            self._engine.write([(store_keys.NEXT_KEY, NUMBER.pack(self.next_offset))])
            self.restoring, self._seen = False, None

    def purge_deletions(self, before_ms: int, limit: int, before_offset: int = MAX_OFFSET) -> int:
        """Purges at most `limit` markers of deletions that arrived before this time, and stand before this offset.

        Returns how many it looked at. `purged_offset` rises before the markers go, so that a reader who finds no row
        also finds it risen.
        """
        deletes: list[bytes] = []
        purged_offset = self.purged_offset
        due = self._due_before(DELETED_PREFIX, before_ms, limit, before_offset)
        keys = [key for _, key, _ in due]
        rows, markers = self._engine.get_many(keys), self._engine.get_many([MARKER_PREFIX + key for key in keys])
        for (entry, key, offset), row, marker in zip(due, rows, markers, strict=True):
            deletes.append(entry)
            if marker is None or store_keys.offset_of(marker) != offset:
                continue  # deleted again since
            deletes.append(MARKER_PREFIX + key)
            if row is None:
                purged_offset = max(purged_offset, offset)
                deletes += [] if self._history is None else self._versions_up_to(key, offset)
        self._note_purge(purged_offset, deletes)
        return len(due)

    def purge_expired(self, before_ms: int, limit: int) -> int:
        """Purges the rows of records that were committed before this time, as `purge_deletions` does.

        The log has no record of that: a caller who saw the row learns of it with the next record. Until there is one,
        the row stays where it is.
        """
        deletes: list[bytes] = []
        purged_offset = self.purged_offset
        due_rows = self._due_before(EXPIRES_PREFIX, before_ms, limit)
        for entry, key, offset in due_rows:
            if offset + 1 >= self.next_offset:
                continue
            deletes.append(entry)
            row = self._engine.get_many([key])[0]
            if row is not None and store_keys.offset_of(row) == offset:
                deletes.append(key)
                if key in self.misplaced:
                    deletes.append(MISPLACED_PREFIX + key)
                    self.misplaced -= {key}
                purged_offset = max(purged_offset, offset + 1)
            deletes += [] if self._history is None else self._versions_up_to(key, offset)
        self._note_purge(purged_offset, deletes)
        return len(due_rows)

    def purge_versions(self, before_ms: int, limit: int) -> int:
        """Purges at most `limit` versions that were replaced before this time; returns how many it looked at."""
        due_versions = self._due_before(REPLACED_PREFIX, before_ms, limit)
        deletes = [key for due, row, offset in due_versions for key in (due, *self._versions_up_to(row, offset))]
        if deletes:
            self._engine.write((), deletes)
        return len(due_versions)

    def checkpoint(self, path: Path) -> None:
        """Makes a directory that can be opened as this store is now; see Engine.checkpoint."""
        self._engine.checkpoint(path)

    def close(self) -> None:
        """Releases everything; reads from then on raise StoreClosedError. Closing again does nothing."""
        self._engine.close()

    def _noted_misplaced(self) -> frozenset[bytes]:
        noted = self._engine.scan(MISPLACED_PREFIX, MISPLACED_PREFIX + b"\xff")
        return frozenset(key[len(MISPLACED_PREFIX) :] for key, _ in noted)

    def _note_misplaced(
        self,
        misplaced: Sequence[bytes],
        rows: Mapping[bytes, bytes],
        puts: list[tuple[bytes, bytes]],
        deletes: list[bytes],
    ) -> frozenset[bytes]:
        """Adds the notes to `puts` and `deletes`; returns the misplaced keys that are known then."""
        known = set(self.misplaced)
        for key in misplaced:
            row = rows.get(key)
            if row is None:  # older than the stored row, which is noted already
                continue
            if row[FLAGS_AT] & DELETED:
                known.discard(key)
            elif len(known) < MAX_MISPLACED:
                known.add(key)
        puts += [(MISPLACED_PREFIX + key, b"") for key in known - self.misplaced]
        deletes += [MISPLACED_PREFIX + key for key in self.misplaced - known]
        return frozenset(known)

    def _note_purge(self, purged_offset: int, deletes: Sequence[bytes]) -> None:
        if deletes:
            self.purged_offset = purged_offset
            self._note(store_keys.PURGED_KEY, purged_offset, deletes)

    def _due_before(
        self, prefix: bytes, before_ms: int, limit: int, before_offset: int = MAX_OFFSET
    ) -> list[tuple[bytes, bytes, int]]:
        """Returns entries, keys and offsets, in the order of time, up to the first that is not before the offset."""
        entries = self._engine.scan(prefix, store_keys.due_key(prefix, before_ms, b""))
        numbered = ((due, store_keys.due_row(prefix, due), store_keys.number_of(packed)) for due, packed in entries)
        return list(islice(takewhile(lambda row: row[2] < before_offset, numbered), limit))

    def _keep_versions(
        self, replaced: Sequence[Replaced], arrived_ms: int, puts: list[tuple[bytes, bytes]]
    ) -> list[bytes]:
        """Adds the versions to `puts`; returns the keys of those beyond the number to keep."""
        if self._history is None:
            return []
        kept: dict[bytes, list[bytes]] = {}
        for key, value, successor in replaced:
            version = store_keys.version_key(key, store_keys.offset_of(value))
            puts.append((version, value))
            if self._history.versions is not None:
                if key not in kept:
                    kept[key] = self._versions_up_to(key, store_keys.offset_of(value))
                kept[key].append(version)
            else:
                commit_ms = store_keys.commit_ms_of(successor)
                puts.append(_due(REPLACED_PREFIX, arrived_ms if commit_ms is None else commit_ms, key, value))
        return [version for versions in kept.values() for version in versions[: -(self._history.versions or 0)]]

    def _versions_up_to(self, key: bytes, offset: int) -> list[bytes]:
        first, end = store_keys.version_key(key, 0), store_keys.version_key(key, offset + 1)
        return [version for version, _ in self._engine.scan(first, end)]

    def _note(self, key: bytes, number: int, deletes: Sequence[bytes] = ()) -> None:
        self._engine.write([(key, NUMBER.pack(number))], deletes, durable=not self.restoring)


def _expiries(rows: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, bytes]]:
    for key, value in rows.items():
        commit_ms = store_keys.commit_ms_of(value)
        if commit_ms is not None and not value[FLAGS_AT] & DELETED:
            yield _due(EXPIRES_PREFIX, commit_ms, key, value)


def _due(prefix: bytes, due_ms: int, key: bytes, value: bytes) -> tuple[bytes, bytes]:
    return store_keys.due_key(prefix, due_ms, key), NUMBER.pack(store_keys.offset_of(value))
