"""The engine on disk: one RocksDB database for each partition."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import rocksdict
from rocksdict import Rdict
from typing_extensions import override

from query_service.errors import ColdError, StoreClosedError, StoreError, StoreFailedError, StoreUnusableError
from query_service.storage.engine import Engine, Rows, Skip

_CLOSE_ATTEMPTS = 2000
_CLOSE_PAUSE_S = 0.005
_CLOSED = "the partition has moved away: ask again"
_FILES = re.compile(r"LOCK|LOG(\.old\.\d+)?|IDENTITY|CURRENT|(MANIFEST|OPTIONS)-\d+(\.dbtmp)?|\d+\.\w+|rocksdict-.*")
_SLOW_S = 0.0005
_SLOW_FOR_S = 1.0
_REFUSALS = ("No space left", "Permission denied", "Too many open files", "lock hold by", "Read-only file system")


@dataclass(eq=False)
class Disk:
    """Whether reads of the disk have been slow lately: two in a row, or two of a few, are no accident."""

    slow_until: float = 0.0
    _slow_share: float = 0.0

    def note(self, took_s: float) -> None:
        """Notes how long a read of one key took that was not in RocksDB's caches."""
        self._slow_share += ((took_s > _SLOW_S) - self._slow_share) / 8
        if took_s > _SLOW_S and self._slow_share > 0.2:
            self.slow_until = time.monotonic() + _SLOW_FOR_S

    @property
    def is_slow(self) -> bool:
        return time.monotonic() < self.slow_until


class RocksdbEngine(Engine):
    """An engine on disk. After a power cut it may be as it was some writes before.

    Writes that are not durable skip RocksDB's write-ahead log. The next durable one first flushes them: the log alone
    would bring back the later write without the earlier ones.
    """

    def __init__(self, database: Rdict, disk: Disk | None = None) -> None:
        self._database = database
        self._disk = disk or Disk()
        self._closed = False
        self._logged = rocksdict.WriteOptions()
        self._unlogged = rocksdict.WriteOptions()
        self._unlogged.disable_wal = True  # type: ignore[method-assign, assignment]  # it is a property
        self._unflushed = False

    @override
    def get(self, key: bytes) -> bytes | None:
        """Reads a row on the event loop, even one that is not in RocksDB's caches, until such reads are slow.

        The row may be in the operating system's cache, which is nearly as fast but cannot be asked. A thread costs ten
        times as much.
        """
        self._check_open()
        may_exist, value = self._cached(key)
        if value:
            return value
        if may_exist and self._disk.is_slow:
            raise ColdError("the row is on a slow disk: it is read in a thread")
        began = time.monotonic()
        [value] = self.get_many([key])
        self._disk.note(time.monotonic() - began)
        return value

    @override
    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self._check_open()
        try:
            values: Any = self._database.get(cast(Any, keys))  # unlike other reads, it releases the interpreter's lock
        except Exception as error:
            raise _store_error(error) from error
        return cast(list[bytes | None], values)

    @override
    def is_at_hand(self, keys: list[bytes]) -> bool:
        self._check_open()
        for key in keys:
            may_exist, value = self._cached(key)
            if may_exist and not value:
                return False
        return True

    def _cached(self, key: bytes) -> tuple[bool, bytes | None]:
        """Returns whether a value may exist, and the value if RocksDB's caches have it; empty for some not in them.

        No value of a row is empty.
        """
        try:
            return cast(tuple[bool, bytes | None], self._database.key_may_exist(key, True))
        except Exception as error:
            raise _store_error(error) from error

    @override
    def scan(
        self, first: bytes, end: bytes, *, reverse: bool = False, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        self._check_open()
        options = rocksdict.ReadOptions()
        options.set_iterate_upper_bound(end)
        try:
            rows: rocksdict.RdictIter = self._database.iter(options)
            rows.seek_to_last() if reverse else rows.seek(first)
            while rows.valid() and (not reverse or rows.key() >= first):
                key = rows.key()
                yield key, rows.value()
                target = None if skip is None else skip(key)
                if target is None:
                    rows.prev() if reverse else rows.next()
                elif reverse:
                    _seek_before(rows, target)
                else:
                    rows.seek(target)
            rows.status()
        except Exception as error:
            raise _store_error(error) from error

    @override
    def write(self, puts: Rows, deletes: Iterable[bytes] = (), *, durable: bool = True) -> None:
        self._check_open()
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in puts:
            batch[key] = value
        for key in deletes:
            del batch[key]
        try:
            if durable and self._unflushed:
                self._database.flush()
            self._database.write(batch, self._logged if durable else self._unlogged)
        except Exception as error:
            raise _store_error(error) from error
        self._unflushed = not durable

    @override
    def checkpoint(self, path: Path) -> None:
        self._check_open()
        try:
            self._database.flush()  # releases the interpreter's lock, which a checkpoint holds while it flushes
            rocksdict.Checkpoint(self._database).create_checkpoint(str(path))
        except Exception as error:
            raise _store_error(error) from error

    @override
    def close(self) -> None:
        """Closes the database; also raises StoreFailedError when reads go on for longer than ten seconds."""
        self._closed = True  # first, so that only the reads that are under way have to end
        for _ in range(_CLOSE_ATTEMPTS):
            try:
                with suppress(rocksdict.DbClosedError):
                    self._database.close()
            except RuntimeError:  # another thread is in the middle of a read
                time.sleep(_CLOSE_PAUSE_S)
            else:
                return
        raise StoreFailedError("the store cannot be closed: its reads do not end")

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(_CLOSED)


class RocksdbOpener:
    """Opens databases that share a disk, one block cache and one budget for write buffers."""

    def __init__(self, block_cache_bytes: int, write_buffer_bytes: int) -> None:
        self._cache = rocksdict.Cache(block_cache_bytes)
        self._buffers = rocksdict.WriteBufferManager(write_buffer_bytes, False)
        self._disk = Disk()

    def open(self, path: Path) -> RocksdbEngine:
        """Returns the database, new if need be. Raises StoreFailedError when the disk refuses, else StoreUnusableError.

        Blocks for as long as RocksDB needs to replay its log.
        """
        try:
            return RocksdbEngine(Rdict(str(path), self._options()), self._disk)
        except Exception as error:  # rocksdict raises nothing narrower
            refused = any(refusal in str(error) for refusal in _REFUSALS)
            error_type = StoreFailedError if refused else StoreUnusableError
            raise error_type(f"RocksDB cannot open {path}: {error}") from error

    def _options(self) -> rocksdict.Options:
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(self._cache)
        blocks.set_bloom_filter(10, False)
        blocks.set_cache_index_and_filter_blocks(True)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self._buffers)
        options.set_write_buffer_size(16 << 20)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_keep_log_file_num(2)
        options.set_max_open_files(256)
        options.increase_parallelism(2)
        options.set_allow_concurrent_memtable_write(False)  # one thread writes
        return options


def is_database(path: Path) -> bool:
    """Returns whether a directory holds RocksDB's files alone, be they complete or not."""
    return all(_FILES.fullmatch(each.name) for each in path.iterdir())


def _seek_before(rows: rocksdict.RdictIter, target: bytes) -> None:
    """Goes to the last key before the target."""
    rows.seek_for_prev(target)
    if rows.valid() and rows.key() == target:
        rows.prev()


def _store_error(error: Exception) -> StoreError:
    if isinstance(error, rocksdict.DbClosedError | RuntimeError):  # RuntimeError while another thread closes it
        return StoreClosedError(_CLOSED)
    if str(error).startswith("Corruption"):
        return StoreUnusableError(f"the store is corrupt: {error}")
    return StoreFailedError(f"the disk failed: {error}")
