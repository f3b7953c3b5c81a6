"""Looks into a data directory without changing it, also while an instance uses it, and reports its content."""

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rocksdict import AccessType, Options, Rdict

from query_service.errors import DataDirectoryError, StoreUnusableError
from query_service.storage import store_keys
from query_service.storage.rocksdb_engine import RocksdbEngine
from query_service.storage.store_directory import check_format
from query_service.storage.stores_file import OTHER_DIRECTORIES, SET_ASIDE

_ATTEMPTS = 3  # a running instance may remove a file between the listing and the reading of it
_VERSIONS = (store_keys.VERSION_PREFIX, store_keys.VERSION_PREFIX + b"\xff" * 5)
_NUMBERS = ("partition", "rows", "deletions", "versions", "next offset", "bytes")
_HEADINGS = ("store", *_NUMBERS, "kind", "format", "topic id", "all applied at")
_ALIGNMENTS = "<>>>>>><<<<"


@dataclass(frozen=True)
class InspectedPartition:
    """One partition on disk. `deletions` counts the markers; sizes are bytes, times Unix milliseconds."""

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
    """A directory that is no readable partition: its path below the data directory, and why."""

    path: str
    size: int
    reason: str


@dataclass(frozen=True)
class Inspection:
    directory: str
    partitions: tuple[InspectedPartition, ...]
    set_aside: tuple[OtherDirectory, ...]
    unreadable: tuple[OtherDirectory, ...]


def inspect(root: Path) -> Inspection:
    """Reads every row of every partition below `root`.

    A partition that cannot be read is reported with the reason, and the rest is read. A partition that an instance is
    writing is shown as of some moment, without the rows that are not on disk yet. Raises DataDirectoryError when there
    is no such directory.
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
    set_aside = [
        OtherDirectory(str(path.relative_to(root)), _size(path), "set aside; it may be removed")
        for path in sorted((root / SET_ASIDE).glob("*"))
    ]
    return Inspection(str(root), tuple(partitions), tuple(set_aside), tuple(unreadable))


def as_json(inspection: Inspection) -> str:
    return json.dumps(asdict(inspection), indent=2) + "\n"


def as_table(inspection: Inspection) -> str:
    lines = [inspection.directory, ""]
    if inspection.partitions:
        rows = [_HEADINGS, *map(_row, inspection.partitions), _sum(inspection.partitions)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (f"{text:{side}{width}}" for text, side, width in zip(row, _ALIGNMENTS, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
    else:
        lines.append("no partitions on disk")
    for title, directories in (("set aside", inspection.set_aside), ("not readable", inspection.unreadable)):
        if directories:
            lines += ["", f"{title}:"]
            lines += [f"  {other.path}  {other.size:,} bytes: {other.reason}" for other in directories]
    return "\n".join(lines) + "\n"


def _partition_paths(root: Path) -> list[Path]:
    stores = [path for path in root.iterdir() if path.is_dir() and path.name not in OTHER_DIRECTORIES]
    paths = [path for store in stores for path in store.iterdir()]
    return sorted(paths, key=lambda path: (path.parent.name, not path.name.isdigit(), path.name.zfill(9)))


def _partition(path: Path, attempts: int = _ATTEMPTS) -> InspectedPartition:
    if not path.name.isdigit() or not (path / "CURRENT").is_file():
        raise StoreUnusableError("it is not a partition of a store")
    options = Options(raw_mode=True)
    try:
        with TemporaryDirectory() as log_directory:
            options.set_db_log_dir(log_directory)  # RocksDB begins a log of its own even where it only reads
            with closing(Rdict(str(path), options, access_type=AccessType.read_only())) as database:
                return _contents(path, RocksdbEngine(database))
    except StoreUnusableError:
        raise
    except Exception as error:  # rocksdict raises nothing narrower
        if attempts == 1:
            raise StoreUnusableError(f"it cannot be read: {error}") from error
    return _partition(path, attempts - 1)


def _contents(path: Path, engine: RocksdbEngine) -> InspectedPartition:
    check_format(engine.get_many([store_keys.FORMAT_KEY])[0])
    notes = [store_keys.IDENTITY_KEY, store_keys.KIND_KEY, store_keys.NEXT_KEY, store_keys.CURRENT_KEY]
    identity, kind, next_offset, current_ms = engine.get_many(notes)
    return InspectedPartition(
        store=path.parent.name,
        partition=int(path.name),
        format=str(store_keys.FORMAT),
        kind=(kind or b"").decode(errors="replace"),
        topic_id=(identity or b"").decode(errors="replace").rpartition("/")[0],
        next_offset=store_keys.number_of(next_offset),
        rows=sum(1 for _ in engine.scan(store_keys.ROWS_FROM, store_keys.ROWS_TO)),
        deletions=sum(1 for _ in engine.scan(*store_keys.MARKERS)),
        versions=sum(1 for _ in engine.scan(*_VERSIONS)),
        size=_size(path),
        current_ms=store_keys.number_of(current_ms),
    )


def _size(path: Path) -> int:
    size = 0
    for file in [path, *path.rglob("*")]:
        with suppress(FileNotFoundError):  # a running instance has removed it
            size += file.stat().st_size if file.is_file() else 0
    return size


def _row(partition: InspectedPartition) -> tuple[str, ...]:
    current = datetime.fromtimestamp(partition.current_ms / 1000, UTC).isoformat(timespec="milliseconds")
    counts = (partition.rows, partition.deletions, partition.versions, partition.next_offset, partition.size)
    labels = (partition.kind, partition.format, partition.topic_id, current)
    return (partition.store, str(partition.partition), *(f"{count:,}" for count in counts), *labels)


def _sum(partitions: Sequence[InspectedPartition]) -> tuple[str, ...]:
    columns = zip(*((each.rows, each.deletions, each.versions, each.size) for each in partitions), strict=True)
    rows, deletions, versions, size = (f"{sum(column):,}" for column in columns)
    return ("all", str(len(partitions)), rows, deletions, versions, "", size, "", "", "", "")
