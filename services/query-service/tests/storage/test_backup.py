"""A backup fills an empty data directory, or is refused with the mismatch."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from query_service.errors import BackupError
from query_service.storage.backup import MANIFEST, replace_directory, restore, write_manifest
from query_service.storage.checkpoints import Checkpoints
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import StoreDefinition
from testkit.query_service import ManualClock, OpenReplica, put, store_definition

STORE = "orders-by-key"
LIMIT_MS = 3_600_000


@pytest.fixture
async def backup(open_replica: OpenReplica, checkpoints: Checkpoints, wall: ManualClock, tmp_path: Path) -> Path:
    """A backup of one partition with two rows."""
    replica = open_replica(3)
    replica.apply([put("a", 1, 0), put("b", 1, 1)], 2)
    checkpoint = checkpoints.create(replica)
    files = tmp_path / "files"
    files.mkdir()
    for file in checkpoint.files:
        piece = checkpoints.read(checkpoint.checkpoint_id, file.name, 0, file.size)
        (files / file.name).write_bytes(piece.data)
    write_manifest(files, STORE, 3, checkpoint, int(wall.now * 1000))
    replace_directory(files, tmp_path / "backup" / STORE / "3")
    return tmp_path / "backup"


@pytest.fixture
def empty(tmp_path: Path, wall: ManualClock) -> StoreDirectory:
    """A data directory without partitions."""
    return StoreDirectory(
        tmp_path / "empty",
        RocksdbOpener(1 << 20, 8 << 20),
        limit_ms=lambda _: LIMIT_MS,
        wall_ms=lambda: int(wall.now * 1000),
        on_set_aside=lambda: None,
    )


def change_manifest(backup: Path, **fields: object) -> None:
    path = backup / STORE / "3" / "manifest.json"
    manifest: dict[str, Any] = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, **fields}))


def sst_file(backup: Path) -> Path:
    return next((backup / STORE / "3").glob("*.sst"))


async def test_an_instance_goes_on_from_it(backup: Path, empty: StoreDirectory) -> None:
    [manifest] = restore(backup, empty, [store_definition(STORE)], LIMIT_MS)
    store = empty.resume(store_definition(STORE), "id", 3, 2)
    assert store is not None

    assert [key for key, _ in store.scan(b"a", b"z")] == [b"a", b"b"]
    assert store.next_offset == manifest.next_offset == 2
    store.close()


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (store_definition("another"), "stores file"),
        (store_definition(STORE, engine="memory"), "stores file"),
        (store_definition(STORE, topic="another"), "topic"),
        (store_definition(STORE, history={"versions": 2}), "rules"),
    ],
)
async def test_a_store_that_is_made_otherwise_is_refused(
    backup: Path, empty: StoreDirectory, definition: StoreDefinition, reason: str
) -> None:
    with pytest.raises(BackupError, match=reason):
        restore(backup, empty, [definition], LIMIT_MS)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"version": 2}, "version 2"),
        ({"format": 1}, "format 1"),
        ({"partition": 2}, "move it back"),
        ({"files": {"../x": {"size": 0, "sha256": ""}}}, "outside"),
        ({"version": 0}, "version 0"),
        ({"next_offset": "many"}, "not a manifest"),
    ],
)
async def test_a_manifest_that_does_not_fit_is_refused(
    backup: Path, empty: StoreDirectory, fields: dict[str, object], reason: str
) -> None:
    change_manifest(backup, **fields)

    with pytest.raises(BackupError, match=reason):
        restore(backup, empty, [store_definition(STORE)], LIMIT_MS)


async def test_a_manifest_with_fields_of_a_later_release_of_its_version_is_read(
    backup: Path, empty: StoreDirectory
) -> None:
    change_manifest(backup, surprise=1)
    [manifest] = restore(backup, empty, [store_definition(STORE)], LIMIT_MS)

    assert manifest.next_offset == 2


async def test_a_manifest_as_releases_before_the_message_wrote_it_is_read(backup: Path, empty: StoreDirectory) -> None:
    """They wrote all numbers as numbers, where the JSON of messages has texts of 64 bits."""
    files = {path.name: path for path in sst_file(backup).parent.iterdir() if path.name != MANIFEST}
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    change_manifest(
        backup,
        version=1,
        format=2,
        next_offset=2,
        taken_ms=int(empty.wall_ms()),
        files={name: {"size": path.stat().st_size, "sha256": sums[name]} for name, path in files.items()},
    )
    [manifest] = restore(backup, empty, [store_definition(STORE)], LIMIT_MS)

    assert manifest.next_offset == 2


@pytest.mark.parametrize("spoil", [lambda data: data[:-1], lambda data: data[:9] + b"?" + data[10:], lambda _: b""])
async def test_a_file_that_has_changed_is_refused_and_nothing_is_placed(
    backup: Path, empty: StoreDirectory, spoil: Callable[[bytes], bytes]
) -> None:
    path = sst_file(backup)
    path.write_bytes(spoil(path.read_bytes()))

    with pytest.raises(BackupError, match="changed after"):
        restore(backup, empty, [store_definition(STORE)], LIMIT_MS)
    assert not empty.has(store_definition(STORE), 3)


async def test_a_file_that_is_missing_is_refused(backup: Path, empty: StoreDirectory) -> None:
    sst_file(backup).unlink()

    with pytest.raises(BackupError, match="cannot be restored"):
        restore(backup, empty, [store_definition(STORE)], LIMIT_MS)


async def test_one_that_the_instance_would_not_resume_from_is_refused(
    backup: Path, empty: StoreDirectory, wall: ManualClock
) -> None:
    wall.now += LIMIT_MS / 1000 + 1

    with pytest.raises(BackupError, match="RESUME_LIMIT_S"):
        restore(backup, empty, [store_definition(STORE)], LIMIT_MS)


async def test_a_partition_that_is_there_is_never_replaced(backup: Path, empty: StoreDirectory) -> None:
    restore(backup, empty, [store_definition(STORE)], LIMIT_MS)

    with pytest.raises(BackupError, match="remove it first"):
        restore(backup, empty, [store_definition(STORE)], LIMIT_MS)


def test_a_directory_without_a_backup_is_refused(empty: StoreDirectory, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="no partition"):
        restore(tmp_path, empty, [store_definition(STORE)], LIMIT_MS)


def test_a_backup_replaces_the_former_one_of_its_partition(tmp_path: Path) -> None:
    for number in ("1", "2"):
        finished = tmp_path / "finished"
        finished.mkdir()
        (finished / number).touch()
        replace_directory(finished, tmp_path / "target")

    assert [path.name for path in (tmp_path / "target").iterdir()] == ["2"]
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
