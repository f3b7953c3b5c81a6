"""The data directory of an instance: its lock, and the directories of the stores in it."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from query_service.errors import DataDirectoryError, StoreUnusableError
from query_service.settings import Settings
from query_service.storage import store_keys
from query_service.storage.engine import Engine, MemoryEngine
from query_service.storage.rocksdb_engine import RocksdbEngine, RocksdbOpener
from query_service.storage.store import PartitionStore
from query_service.storage.stores_file import StoreDefinition

SET_ASIDE = "set-aside"
FIRST_KIND = b"state-record"  # the kind of directories from before kinds were noted

_log = structlog.get_logger()


@dataclass(frozen=True)
class Topic:
    """One incarnation of a topic, as the broker describes it; `epoch` is that of its positions."""

    name: str
    topic_id: str
    epoch: int
    partitions: int


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps other instances from the directory within the block; makes it if need be. Raises DataDirectoryError."""
    name = Settings.variable("data_directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataDirectoryError(f"{name}={directory}: it cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise DataDirectoryError(f"{name}={directory}: another instance uses it: give each its own") from error
    finally:
        os.close(lock)  # the kernel does this when the process ends in any other way


@dataclass(frozen=True)
class StoreDirectory:
    """Opens the stores of all partitions of an instance: `<root>/<store>/<partition>`, and `<root>/set-aside`.

    A directory that is corrupt, of another topic or of another format is moved to set-aside and never deleted: people
    may want to look at it. One that is merely too old to resume from, or that the stores file now wants otherwise, is
    emptied, because the topic has it all. Stores in memory have no directory. A store that was last current longer than
    `resume_limit_ms` ago is too old.
    """

    root: Path
    databases: RocksdbOpener
    resume_limit_ms: int
    wall_ms: Callable[[], int]
    on_set_aside: Callable[[], None]

    def open(self, definition: StoreDefinition, topic_id: str, partition: int) -> PartitionStore:
        """Returns the store, with what is on disk if it can be resumed from, else empty.

        Blocks for as long as RocksDB needs to replay its log. Raises StoreFailedError when the disk refuses.
        """
        if definition.in_memory:
            return self._empty(MemoryEngine(), definition)
        path = self._path(definition, partition)
        identity = store_keys.identity_of(topic_id, partition)
        if path.exists():
            try:
                return self._resume(path, definition, identity)
            except StoreUnusableError as error:
                self.set_aside(definition, partition, str(error))
        return self._create(path, definition, identity)

    def reset(self, definition: StoreDefinition, topic_id: str, partition: int) -> PartitionStore:
        """Deletes what is on disk, which must be closed, and returns an empty store. Raises StoreFailedError."""
        if not definition.in_memory:
            shutil.rmtree(self._path(definition, partition), ignore_errors=True)
        return self.open(definition, topic_id, partition)

    def set_aside(self, definition: StoreDefinition, partition: int, reason: str) -> None:
        """Moves the directory, which must be closed, out of the way, for people to look at."""
        path = self._path(definition, partition)
        if definition.in_memory or not path.exists():
            return
        target = self.root / SET_ASIDE / f"{definition.name}-{partition}-{self.wall_ms()}"
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        self.on_set_aside()
        _log.warning("directory set aside; it is rebuilt from the topic", reason=reason, moved_to=str(target))

    def _path(self, definition: StoreDefinition, partition: int) -> Path:
        return self.root / definition.name / str(partition)

    def _resume(self, path: Path, definition: StoreDefinition, identity: bytes) -> PartitionStore:
        database = self.databases.open(path)
        try:
            check_format(database.get(store_keys.FORMAT_KEY))
            _check_identity(database.get(store_keys.IDENTITY_KEY), identity)
            kind = database.get(store_keys.KIND_KEY) or FIRST_KIND
            store = PartitionStore(RocksdbEngine(database), definition)
        except BaseException:
            database.close()
            raise
        age_ms = self.wall_ms() - store.current_ms
        same_kind = kind == store_keys.kind_of(definition)
        if age_ms <= self.resume_limit_ms and same_kind:
            return store
        store.close()
        reason = "too old to resume from" if same_kind else "not what the stores file asks for now"
        _log.info("data on disk is rebuilt", reason=reason, path=str(path), age_s=age_ms // 1000, kind=kind.decode())
        shutil.rmtree(path)
        return self._create(path, definition, identity)

    def _create(self, path: Path, definition: StoreDefinition, identity: bytes) -> PartitionStore:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = self.databases.open(path)
        database[store_keys.FORMAT_KEY] = str(store_keys.FORMAT).encode()
        database[store_keys.IDENTITY_KEY] = identity
        database[store_keys.KIND_KEY] = store_keys.kind_of(definition)
        return self._empty(RocksdbEngine(database), definition)

    def _empty(self, engine: Engine, definition: StoreDefinition) -> PartitionStore:
        store = PartitionStore(engine, definition)
        store.note_current(self.wall_ms())
        return store


def check_format(stored: bytes | None) -> None:
    """Raises StoreUnusableError for a database that another format, or something else, has written."""
    if stored is None:
        raise StoreUnusableError("it is not a store of this service")
    if stored != str(store_keys.FORMAT).encode():
        raise StoreUnusableError(f"its format is {stored.decode(errors='replace')}, not {store_keys.FORMAT}")


def _check_identity(stored: bytes | None, identity: bytes) -> None:
    if stored != identity:
        raise StoreUnusableError(f"it was read from {stored!r}, not from {identity!r}")
