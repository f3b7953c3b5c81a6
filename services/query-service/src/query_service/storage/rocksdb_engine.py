"""An engine on disk: one RocksDB."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, cast

from rocksdict import DbClosedError, Rdict, RdictIter, ReadOptions, WriteBatch, WriteOptions

from query_service.errors import StoreClosedError, StoreError, StoreFailedError, StoreUnusableError

_CLOSE_ATTEMPTS = 2000
_CLOSE_PAUSE_S = 0.005
_MOVED = "the partition has moved away: ask again"


class RocksdbEngine:
    """See Engine. After a power cut it may be as it was some writes before.

    Writes that are not durable leave out RocksDB's log. The next durable one first puts them on disk: the log alone
    would bring back the later write without the earlier ones.
    """

    def __init__(self, database: Rdict) -> None:
        """Takes over an open database in raw mode."""
        self._database = database
        self._closed = False
        self._logged = WriteOptions()
        self._unlogged = WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]  # it is a property
        self._behind = False

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """See Engine."""
        self._check_open()
        try:
            values: Any = self._database.get(cast(Any, keys))
        except Exception as error:
            raise _named(error) from error
        return cast(list[bytes | None], values)

    def scan(self, first: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """See Engine."""
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

    def write(
        self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, durable: bool = True
    ) -> None:
        """See Engine."""
        self._check_open()
        batch = WriteBatch(raw_mode=True)
        for key, value in puts:
            batch[key] = value
        for key in deletes:
            del batch[key]
        try:
            if durable and self._behind:
                self._database.flush()
            self._database.write(batch, self._logged if durable else self._unlogged)
        except Exception as error:
            raise _named(error) from error
        self._behind = not durable

    def close(self) -> None:
        """See Engine; raises StoreFailedError when reads go on for longer than ten seconds."""
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
            raise StoreClosedError(_MOVED)


def _named(error: Exception) -> StoreError:
    if isinstance(error, DbClosedError | RuntimeError):  # RuntimeError while another thread closes it
        return StoreClosedError(_MOVED)
    if str(error).startswith("Corruption"):
        return StoreUnusableError(f"the store is corrupt: {error}")
    return StoreFailedError(f"the disk failed: {error}")
