"""Looks into a data directory without changing it, also while an instance uses it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rocksdict import AccessType, Options, Rdict

from query_service.errors import DataDirectoryError, StoreUnusableError
from query_service.storage import store_keys
from query_service.storage.rocksdb_engine import RocksdbEngine
from query_service.storage.store_directory import SET_ASIDE
from query_service.storage.store_keys import DELETED, FLAGS_AT, NUMBER, VERSION_PREFIX

_ATTEMPTS = 3  # a running instance may remove a file between the listing and the reading of it
_ROWS = (b"\x01", b"\xff")
_VERSIONS = (VERSION_PREFIX, VERSION_PREFIX + b"\xff" * 5)


@dataclass(frozen=True)
class InspectedPartition:
    """One partition on disk. `deletions` are those that are remembered; sizes are bytes, times Unix milliseconds."""

    store: str
    partition: int
    format: str
    kind: str
    topic_id: str
    next_offset: int
    rows: int
    deletions: int
    versions: int
    size: int
    current_ms: int


@dataclass(frozen=True)
class OtherDirectory:
    """What lies in the data directory and is no partition that can be read: its path below it, and why."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True)
class Inspection:
    """All that a data directory holds."""

    directory: str
    partitions: tuple[InspectedPartition, ...]
    set_aside: tuple[OtherDirectory, ...]
    unreadable: tuple[OtherDirectory, ...]


def inspect(root: Path) -> Inspection:
    """Reads every row of every partition below `root`.

    What cannot be read is told with its reason, and the rest goes on. A partition that an instance is writing is shown
    as of some moment; what it has not yet put on disk is not seen. Raises DataDirectoryError when there is no such
    directory.
    """
    if not root.is_dir():
        raise DataDirectoryError(f"{root} is not a directory: give the QUERY_SERVICE_DATA_DIRECTORY of an instance")
    partitions: list[InspectedPartition] = []
    unreadable: list[OtherDirectory] = []
    for path in _partition_paths(root):
        try:
            partitions.append(_partition(path))
        except StoreUnusableError as error:
            unreadable.append(OtherDirectory(str(path.relative_to(root)), _size(path), str(error)))
    aside = root / SET_ASIDE
    set_aside = [
        OtherDirectory(str(path.relative_to(root)), _size(path), "set aside; it may be removed")
        for path in (sorted(aside.iterdir()) if aside.is_dir() else ())
    ]
    return Inspection(str(root), tuple(partitions), tuple(set_aside), tuple(unreadable))


def _partition_paths(root: Path) -> list[Path]:
    stores = sorted(path for path in root.iterdir() if path.is_dir() and path.name != SET_ASIDE)
    found = [path for store in stores for path in store.iterdir()]
    return sorted(found, key=lambda path: (path.parent.name, not path.name.isdigit(), path.name.zfill(9)))


def _partition(path: Path) -> InspectedPartition:
    if not path.name.isdigit() or not (path / "CURRENT").is_file():
        raise StoreUnusableError("it is not a partition of a store")
    for attempt in range(_ATTEMPTS):
        try:
            return _read(path)
        except StoreUnusableError:
            raise
        except Exception as error:  # rocksdict raises nothing narrower
            if attempt + 1 == _ATTEMPTS:
                raise StoreUnusableError(f"it cannot be read: {error}") from error
    raise AssertionError("the last attempt returns or raises")


def _read(path: Path) -> InspectedPartition:
    with TemporaryDirectory() as elsewhere:
        options = Options(raw_mode=True)
        options.set_db_log_dir(elsewhere)  # RocksDB begins a log of its own even where it only reads
        database = Rdict(str(path), options, access_type=AccessType.read_only())
        try:
            return _contents(path, RocksdbEngine(database))
        finally:
            database.close()


def _contents(path: Path, engine: RocksdbEngine) -> InspectedPartition:
    known = (store_keys.FORMAT_KEY, store_keys.IDENTITY_KEY, store_keys.KIND_KEY)
    form, identity, kind = engine.get_many(list(known))
    if form is None:
        raise StoreUnusableError("it is not a store of this service")
    if form != str(store_keys.FORMAT).encode():
        raise StoreUnusableError(f"its format is {form.decode(errors='replace')}, not {store_keys.FORMAT}")
    next_offset, current_ms = engine.get_many([store_keys.NEXT_KEY, store_keys.CURRENT_KEY])
    deleted = [bool(value[FLAGS_AT] & DELETED) for _, value in engine.scan(*_ROWS)]
    return InspectedPartition(
        store=path.parent.name,
        partition=int(path.name),
        format=form.decode(),
        kind=(kind or b"state-record").decode(errors="replace"),
        topic_id=(identity or b"").decode(errors="replace").rpartition("/")[0],
        next_offset=_number(next_offset),
        rows=deleted.count(False),
        deletions=deleted.count(True),
        versions=sum(1 for _ in engine.scan(*_VERSIONS)),
        size=_size(path),
        current_ms=_number(current_ms),
    )


def _number(packed: bytes | None) -> int:
    return 0 if packed is None else int(NUMBER.unpack(packed)[0])


def _size(path: Path) -> int:
    return sum(_sizes(path))


def _sizes(path: Path) -> Iterator[int]:
    for file in [path, *path.rglob("*")]:
        try:
            if file.is_file():
                yield file.stat().st_size
        except FileNotFoundError:  # a running instance has removed it
            continue
