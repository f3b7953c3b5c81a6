"""The data directory of an instance: its lock, and the directories of the stores in it."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import structlog

from query_service.errors import DataDirectoryError, StoreFailedError, StoreUnusableError
from query_service.settings import Settings
from query_service.storage import store_keys
from query_service.storage.engine import Engine, MemoryEngine
from query_service.storage.rocksdb_engine import RocksdbOpener, is_database
from query_service.storage.store import PartitionStore
from query_service.storage.stores_file import LOCK, SET_ASIDE, UNFINISHED, StoreDefinition

_NOTES = [store_keys.FORMAT_KEY, store_keys.IDENTITY_KEY, store_keys.KIND_KEY]

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
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
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

    A directory that is corrupt, of another topic or of another format is moved to set-aside: people may want to look at
    it. One that is merely too old to resume from, or that the stores file now wants otherwise, is
    emptied, because the topic has it all. Stores in memory have no directory. A store that was last current longer than
    `limit_ms` of its topic ago is too old.
    """

    root: Path
    databases: RocksdbOpener
    limit_ms: Callable[[str], int]
    wall_ms: Callable[[], int]
    on_set_aside: Callable[[], None]

    def open(self, definition: StoreDefinition, topic_id: str, partition: int, end_offset: int) -> PartitionStore:
        """Returns the store that is on disk if it can be resumed from, else an empty one.

        A store without records notes that it knows of no deletion before `end_offset`: compaction may have removed
        tombstones that other replicas have seen. Blocks for as long as RocksDB needs to replay its log. Raises
        StoreFailedError when the disk refuses; then nothing half-made stays behind.
        """
        store = self.resume(definition, topic_id, partition, end_offset)
        if store is not None:
            return store
        identity = store_keys.identity_of(topic_id, partition)
        with _disk_failures():
            return self._create(self._path(definition, partition), definition, identity, end_offset)

    def resume(
        self, definition: StoreDefinition, topic_id: str, partition: int, end_offset: int
    ) -> PartitionStore | None:
        """Returns the store that is on disk, as `open` does; None when there is none, or none to resume from.

        After None, no directory is left.
        """
        path = self._path(definition, partition)
        with _disk_failures():
            if not definition.in_memory and path.exists():
                try:
                    return self._resume(path, definition, store_keys.identity_of(topic_id, partition), end_offset)
                except StoreUnusableError as error:
                    self.discard(definition, partition, str(error))
        return None

    def has(self, definition: StoreDefinition, partition: int) -> bool:
        """Tells whether the partition has a directory, even an empty or broken one."""
        return self._path(definition, partition).exists()

    def partitions(self, definition: StoreDefinition) -> list[int]:
        """Returns the partitions of a store that have a directory."""
        path = self.root / definition.name
        return [int(each.name) for each in path.iterdir() if each.name.isdecimal()] if path.is_dir() else []

    def prune_set_aside(self, keep_s: float) -> None:
        """Deletes the directories set aside longer than `keep_s` ago, and all but the newest of each partition.

        Raises StoreFailedError.
        """
        newest: dict[str, int] = {}
        with _disk_failures():
            paths = [path for path in (self.root / SET_ASIDE).glob("*-*") if path.name.rpartition("-")[2].isdecimal()]
            for path in sorted(paths, key=lambda path: -int(path.name.rpartition("-")[2])):
                place, _, at_ms = path.name.rpartition("-")
                if place in newest or self.wall_ms() - int(at_ms) > keep_s * 1000:
                    shutil.rmtree(path)
                newest[place] = int(at_ms)

    @contextmanager
    def unfinished(self, definition: StoreDefinition, partition: int) -> Iterator[Path]:
        """Makes an empty directory, to fill and then `place` within the block; removes the rest of it after.

        Raises StoreFailedError.
        """
        parent = self.root / UNFINISHED
        with _disk_failures():
            parent.mkdir(parents=True, exist_ok=True)
            path = Path(mkdtemp(prefix=f"{definition.name}-{partition}-", dir=parent))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def place(self, unfinished: Path, definition: StoreDefinition, partition: int) -> None:
        """Makes a complete directory the partition's, which has none; from then on it also survives a power cut.

        Raises StoreFailedError.
        """
        path = self._path(definition, partition)
        with _disk_failures():
            for file in unfinished.iterdir():
                _synchronize(file)
            _synchronize(unfinished)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.rename(path)
            _synchronize(path.parent)

    def remove_unfinished(self) -> None:
        """Removes the half-made directories that an earlier process left."""
        shutil.rmtree(self.root / UNFINISHED, ignore_errors=True)

    def discard(self, definition: StoreDefinition, partition: int, set_aside_for: str | None) -> None:
        """Moves the directory, which must be closed, out of the way for a reason, or deletes it without one.

        Does nothing where there is none. Raises StoreFailedError.
        """
        path = self._path(definition, partition)
        if definition.in_memory or not path.exists():
            return
        with _disk_failures():
            if set_aside_for is None:
                shutil.rmtree(path)
                return
            target = self.root / SET_ASIDE / f"{definition.name}-{partition}-{self.wall_ms()}"
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
        self.on_set_aside()
        _log.warning("directory set aside; it is rebuilt from the topic", reason=set_aside_for, moved_to=str(target))

    def _path(self, definition: StoreDefinition, partition: int) -> Path:
        return self.root / definition.name / str(partition)

    def _resume(
        self, path: Path, definition: StoreDefinition, identity: bytes, end_offset: int
    ) -> PartitionStore | None:
        with ExitStack() as undo:
            engine = self.databases.open(path)
            undo.callback(engine.close)
            stored_format, source, kind = engine.get_many(_NOTES)
            if stored_format is None and is_database(path) and not any(True for _ in engine.scan(b"", b"\xff")):
                _log.info("recreating an empty directory: the process died while creating it", path=str(path))
                shutil.rmtree(path)
                return None
            check_format(stored_format)
            if source != identity:
                raise StoreUnusableError(f"it was read from {source!r}, not from {identity!r}")
            store = PartitionStore(engine, definition)
            age_ms = self.wall_ms() - store.current_ms
            same_kind = kind == store_keys.kind_of(definition)
            # Either way: where a clock was ahead and has gone back, nobody knows how old the rows are.
            if abs(age_ms) <= self.limit_ms(definition.topic) and same_kind:
                if store.next_offset == 0:
                    store.note_purged(end_offset - 1)
                undo.pop_all()
                return store
        reason = "too old to resume from" if same_kind else "not what the stores file asks for now"
        _log.info("rebuilding data on disk", reason=reason, path=str(path), age_s=age_ms // 1000, kind=str(kind))
        shutil.rmtree(path)
        return None

    def _create(self, path: Path, definition: StoreDefinition, identity: bytes, end_offset: int) -> PartitionStore:
        with ExitStack() as undo:
            engine: Engine = MemoryEngine()
            if not definition.in_memory:
                path.parent.mkdir(parents=True, exist_ok=True)
                undo.callback(shutil.rmtree, path, ignore_errors=True)  # else the next try would set it aside
                engine = self.databases.open(path)
                undo.callback(engine.close)
            stored_format, kind = str(store_keys.FORMAT).encode(), store_keys.kind_of(definition)
            engine.write(zip(_NOTES, (stored_format, identity, kind), strict=True))
            store = PartitionStore(engine, definition)
            store.note_current(self.wall_ms())
            store.note_purged(end_offset - 1)
            undo.pop_all()
        return store


@contextmanager
def _disk_failures() -> Iterator[None]:
    try:
        yield
    except (OSError, StoreUnusableError) as error:  # a directory that was made just now holds nothing to set aside
        raise StoreFailedError(f"the disk failed: {error}") from error


def _synchronize(path: Path) -> None:
    """Returns once a file or a directory is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def check_format(stored: bytes | None) -> None:
    """Raises StoreUnusableError for a database that another format, or something else, has written."""
    if stored is None:
        raise StoreUnusableError("it is not a store of this service")
    if stored != str(store_keys.FORMAT).encode():
        raise StoreUnusableError(f"its format is {stored.decode(errors='replace')}, not {store_keys.FORMAT}")
