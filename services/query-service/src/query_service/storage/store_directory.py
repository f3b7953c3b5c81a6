"""Opens the directory of a partition's store, or sets it aside and starts an empty one."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, WriteBufferManager

from query_service.errors import StoreFailedError, StoreUnusableError
from query_service.storage import store_keys
from query_service.storage.engine import Engine
from query_service.storage.memory_engine import MemoryEngine
from query_service.storage.rocksdb_engine import RocksdbEngine
from query_service.storage.store import PartitionStore
from query_service.storage.store_definition import StoreDefinition

SET_ASIDE = "set-aside"

_REFUSALS = ("No space left", "Permission denied", "Too many open files", "lock hold by", "Read-only file system")

_FIRST_KIND = b"state-record"  # of directories from before kinds were noted

_log = structlog.get_logger()


@dataclass(frozen=True)
class Identity:
    """What a store was read from: a partition of one incarnation of a topic."""

    topic_id: str
    partition: int

    def encoded(self) -> bytes:
        """Returns the text on disk."""
        return f"{self.topic_id}/{self.partition}".encode()


class StoreDirectory:
    """Where all partitions of an instance lie: `<root>/<store>/<partition>`, and `<root>/set-aside`.

    A directory that is corrupt, of another topic or of another format is moved to set-aside and never deleted: people
    may want to look at it. One that merely is too old to go on from, or that the stores file now wants otherwise, is
    emptied, because the topic has it all. Stores in memory have no directory.
    """

    def __init__(
        self,
        root: Path,
        *,
        block_cache_bytes: int,
        write_buffer_bytes: int,
        resume_limit_ms: int,
        wall_ms: Callable[[], int],
        on_set_aside: Callable[[], None],
    ) -> None:
        """Takes the memory that all stores share, and the age above which a store is rebuilt."""
        self._root = root
        self._cache = Cache(block_cache_bytes)
        self._buffers = WriteBufferManager(write_buffer_bytes, False)
        self._resume_limit_ms = resume_limit_ms
        self._wall_ms = wall_ms
        self._on_set_aside = on_set_aside

    def open(self, definition: StoreDefinition, identity: Identity) -> PartitionStore:
        """Returns the store, with what is on disk when it can be gone on from, else empty.

        Blocks for as long as RocksDB needs to replay its log. Raises StoreFailedError when the disk refuses.
        """
        if definition.in_memory:
            return self._empty(MemoryEngine(), definition)
        path = self._path(definition, identity)
        if path.exists():
            try:
                return self._resume(path, definition, identity)
            except StoreUnusableError as error:
                self.set_aside(definition, identity, str(error))
        return self._create(path, definition, identity)

    def reset(self, definition: StoreDefinition, identity: Identity) -> PartitionStore:
        """Deletes what is on disk, which must be closed, and returns an empty store. Raises StoreFailedError."""
        if definition.in_memory:
            return self._empty(MemoryEngine(), definition)
        path = self._path(definition, identity)
        shutil.rmtree(path, ignore_errors=True)
        return self._create(path, definition, identity)

    def set_aside(self, definition: StoreDefinition, identity: Identity, reason: str) -> None:
        """Moves the directory, which must be closed, out of the way, for people to look at."""
        path = self._path(definition, identity)
        if definition.in_memory or not path.exists():
            return
        target = self._root / SET_ASIDE / f"{definition.name}-{identity.partition}-{self._wall_ms()}"
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        self._on_set_aside()
        _log.warning("directory set aside; it is rebuilt from the topic", reason=reason, moved_to=str(target))

    def _path(self, definition: StoreDefinition, identity: Identity) -> Path:
        return self._root / definition.name / str(identity.partition)

    def _resume(self, path: Path, definition: StoreDefinition, identity: Identity) -> PartitionStore:
        database = self._database(path)
        try:
            _check(database, identity)
            kind = database.get(store_keys.KIND_KEY) or _FIRST_KIND
            store = PartitionStore(RocksdbEngine(database), definition)
        except BaseException:
            database.close()
            raise
        age_ms = self._wall_ms() - store.current_ms
        if age_ms <= self._resume_limit_ms and kind == store_keys.kind_of(definition):
            return store
        store.close()
        reason = (
            "too old to go on from"
            if kind == store_keys.kind_of(definition)
            else "not what the stores file asks for now"
        )
        _log.info("data on disk is rebuilt", reason=reason, path=str(path), age_s=age_ms // 1000, kind=kind.decode())
        shutil.rmtree(path)
        return self._create(path, definition, identity)

    def _create(self, path: Path, definition: StoreDefinition, identity: Identity) -> PartitionStore:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = self._database(path)
        database[store_keys.FORMAT_KEY] = str(store_keys.FORMAT).encode()
        database[store_keys.IDENTITY_KEY] = identity.encoded()
        database[store_keys.KIND_KEY] = store_keys.kind_of(definition)
        return self._empty(RocksdbEngine(database), definition)

    def _empty(self, engine: Engine, definition: StoreDefinition) -> PartitionStore:
        store = PartitionStore(engine, definition)
        store.note_current(self._wall_ms())
        return store

    def _database(self, path: Path) -> Rdict:
        try:
            return Rdict(str(path), self._options())
        except Exception as error:  # rocksdict raises nothing narrower
            refused = any(refusal in str(error) for refusal in _REFUSALS)
            named = StoreFailedError if refused else StoreUnusableError
            raise named(f"RocksDB cannot open {path}: {error}") from error

    def _options(self) -> Options:
        blocks = BlockBasedOptions()
        blocks.set_block_cache(self._cache)
        blocks.set_bloom_filter(10, False)
        blocks.set_cache_index_and_filter_blocks(True)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self._buffers)
        options.set_write_buffer_size(16 << 20)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_keep_log_file_num(2)
        options.set_max_open_files(256)
        options.increase_parallelism(2)
        options.set_memtable_prefix_bloom_ratio(0.1)  # most keys of a restore are new: the fence finds nothing, fast
        options.set_memtable_whole_key_filtering(True)
        options.set_allow_concurrent_memtable_write(False)  # one thread writes
        return options


def _check(database: Rdict, identity: Identity) -> None:
    found = database.get(store_keys.FORMAT_KEY)
    if found is None:
        raise StoreUnusableError("it is not a store of this service")
    if found != str(store_keys.FORMAT).encode():
        raise StoreUnusableError(f"its format is {found.decode(errors='replace')}, not {store_keys.FORMAT}")
    held = database.get(store_keys.IDENTITY_KEY)
    if held != identity.encoded():
        raise StoreUnusableError(f"it was read from {held!r}, not from {identity.encoded()!r}")
