"""The rows of one partition in RocksDB, with the offset to go on from in the same atomic writes."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from rocksdict import DbClosedError, Rdict, RdictIter, ReadOptions, WriteBatch

from query_service import store_keys
from query_service.errors import StoreClosedError, StoreError, StoreFailedError, StoreUnusableError
from query_service.store_keys import NUMBER

_CLOSE_ATTEMPTS = 2000
_CLOSE_PAUSE_S = 0.005


class PartitionStore:
    """One RocksDB. Any thread may read; one thread at a time may write.

    Every method raises StoreClosedError once the store is closed, StoreUnusableError when its
    files are corrupt, and StoreFailedError when the disk refuses, for example because it is full.
    A write survives `kill -9` of the process as soon as the method returns; after a power cut the store may be as it
    was some writes before, with the offset of that time, and goes on from there.
    """

    def __init__(self, database: Rdict, path: Path) -> None:
        """Takes over an open database that `store_directory` has checked."""
        self.path = path
        self._database = database
        self._closed = False
        self.next_offset = self._number(store_keys.NEXT_KEY, 0)
        self.purged_through = self._number(store_keys.PURGED_KEY, -1)
        self.current_ms = self._number(store_keys.CURRENT_KEY, 0)

    def get(self, key: bytes) -> bytes | None:
        """Returns the stored value of one row, which may be a remembered deletion."""
        self._check_open()
        try:
            value: bytes | None = self._database.get(key)
        except Exception as error:
            raise _named(error) from error
        return value

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Returns the stored values of rows, in their order."""
        self._check_open()
        try:
            values: Any = self._database.get(cast(Any, keys))
        except Exception as error:
            raise _named(error) from error
        return cast(list[bytes | None], values)

    def scan(self, first: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Yields keys and stored values with first <= key < end, as of one moment, remembered deletions included."""
        self._check_open()
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        try:
            rows: RdictIter = self._database.iter(options)
            rows.seek_to_last() if reverse else rows.seek(first)
            while rows.valid() and (not reverse or rows.key() >= first):
                yield rows.key(), rows.value()
                rows.prev() if reverse else rows.next()
            rows.status()
        except Exception as error:
            raise _named(error) from error

    def write(self, rows: Mapping[bytes, bytes], next_offset: int, arrived_ms: int) -> None:
        """Stores rows and the offset after them at once; deletions among them are remembered from `arrived_ms` on."""
        batch = WriteBatch(raw_mode=True)
        for key, value in rows.items():
            batch[key] = value
            if value[store_keys.FLAGS_AT] & store_keys.DELETED:
                batch[store_keys.deletion_key(arrived_ms, key)] = NUMBER.pack(store_keys.offset_of(value))
        batch[store_keys.NEXT_KEY] = NUMBER.pack(next_offset)
        self._write(batch)
        self.next_offset = next_offset

    def note_current(self, wall_ms: int) -> None:
        """Notes that everything had been applied at this time; it decides whether a restart may go on from here."""
        batch = WriteBatch(raw_mode=True)
        batch[store_keys.CURRENT_KEY] = NUMBER.pack(wall_ms)
        self._write(batch)
        self.current_ms = wall_ms

    def note_purged(self, offset: int) -> None:
        """Notes that deletions up to this offset may be unknown here."""
        self.purged_through = max(self.purged_through, offset)
        batch = WriteBatch(raw_mode=True)
        batch[store_keys.PURGED_KEY] = NUMBER.pack(self.purged_through)
        self._write(batch)

    def forget_deletions(self, before_ms: int, most: int) -> int:
        """Purges at most `most` deletions that arrived before this time; returns how many it looked at.

        `purged_through` rises before the deletions go, so that a reader who finds no row also finds it risen.
        """
        batch = WriteBatch(raw_mode=True)
        seen = 0
        purged = self.purged_through
        for deletion, packed in self.scan(store_keys.DELETED_PREFIX, store_keys.deletions_before(before_ms)):
            seen += 1
            del batch[deletion]
            key = store_keys.deleted_row(deletion)
            offset = NUMBER.unpack(packed)[0]
            value = self.get(key)
            if value is not None and store_keys.offset_of(value) == offset:
                del batch[key]
                purged = max(purged, offset)
            if seen == most:
                break
        if seen:
            self.purged_through = purged
            batch[store_keys.PURGED_KEY] = NUMBER.pack(purged)
            self._write(batch)
        return seen

    def close(self) -> None:
        """Releases the files; reads from then on raise StoreClosedError. Closing again does nothing.

        Waits for reads in other threads to end; raises StoreFailedError when that takes longer than ten seconds.
        """
        self._closed = True  # first, so that only the reads that are under way have to end
        for _ in range(_CLOSE_ATTEMPTS):
            try:
                self._database.close()
            except DbClosedError:
                return
            except RuntimeError:  # another thread is in the middle of a read
                time.sleep(_CLOSE_PAUSE_S)
            else:
                return
        raise StoreFailedError("the store cannot be closed: it is being read all the time")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the partition has moved away: ask again")

    def _write(self, batch: WriteBatch) -> None:
        try:
            self._database.write(batch)
        except Exception as error:
            raise _named(error) from error

    def _number(self, key: bytes, default: int) -> int:
        packed = self.get(key)
        return default if packed is None else int(NUMBER.unpack(packed)[0])


def _named(error: Exception) -> StoreError:
    if isinstance(error, DbClosedError | RuntimeError):  # RuntimeError while another thread closes it
        return StoreClosedError("the partition has moved away: ask again")
    if str(error).startswith("Corruption"):
        return StoreUnusableError(f"the store is corrupt: {error}")
    return StoreFailedError(f"the disk failed: {error}")
