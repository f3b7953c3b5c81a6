"""One instance uses a data directory; its stores are resumed from, rebuilt or set aside."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from rocksdict import Options, Rdict

from query_service.errors import DataDirectoryError, StoreFailedError
from query_service.storage import store_keys
from query_service.storage.store_directory import locked
from query_service.storage.store_keys import HEADER
from testkit.query_service import ManualClock, OpenDirectory, store_definition

ROW = HEADER.pack(1, 1, 1, 0, 0, 0)


@pytest.fixture
def path(open_directory: OpenDirectory, tmp_path: Path) -> Path:
    """A closed directory with one row."""
    store = open_directory().open(store_definition(), "id", 3, 0)
    store.write({b"a": ROW}, 2, 0)
    store.close()
    return tmp_path / "data" / "s" / "3"


def aside(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "data" / "set-aside").glob("s-3-*"))


def test_a_directory_of_the_same_partition_is_resumed_from(path: Path, open_directory: OpenDirectory) -> None:
    store = open_directory().open(store_definition(), "id", 3, 0)

    assert store.get(b"a") == ROW
    assert store.next_offset == 2


def test_a_directory_of_another_topic_is_set_aside(path: Path, open_directory: OpenDirectory, tmp_path: Path) -> None:
    counted: list[bool] = []
    store = open_directory(lambda: counted.append(True)).open(store_definition(), "another", 3, 0)

    assert store.get(b"a") is None
    assert store.next_offset == 0
    assert len(aside(tmp_path)) == len(counted) == 1


def test_a_directory_of_another_format_is_set_aside(path: Path, open_directory: OpenDirectory, tmp_path: Path) -> None:
    database = Rdict(str(path), Options(raw_mode=True))
    database[store_keys.FORMAT_KEY] = b"999"
    database.close()
    store = open_directory().open(store_definition(), "id", 3, 0)

    assert store.next_offset == 0
    assert len(aside(tmp_path)) == 1


def test_a_corrupt_directory_is_set_aside_as_it_was(path: Path, open_directory: OpenDirectory, tmp_path: Path) -> None:
    (path / "CURRENT").write_bytes(b"garbage")
    store = open_directory().open(store_definition(), "id", 3, 0)

    assert store.next_offset == 0
    assert (aside(tmp_path)[0] / "CURRENT").read_bytes() == b"garbage"


def test_a_directory_of_something_else_is_set_aside(open_directory: OpenDirectory, tmp_path: Path) -> None:
    foreign = tmp_path / "data" / "s" / "3"
    foreign.mkdir(parents=True)
    (foreign / "thesis.txt").write_text("years of work")
    open_directory().open(store_definition(), "id", 3, 0)

    assert (aside(tmp_path)[0] / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("passed_s", [3601, -3601])
def test_data_that_is_too_old_or_of_a_clock_that_was_ahead_is_rebuilt(
    path: Path, open_directory: OpenDirectory, wall: ManualClock, tmp_path: Path, passed_s: int
) -> None:
    wall.now += passed_s
    store = open_directory(resume_limit_s=3600).open(store_definition(), "id", 3, 0)

    assert store.next_offset == 0
    assert aside(tmp_path) == []


def test_a_directory_whose_rows_are_corrupt_is_set_aside(
    path: Path, open_directory: OpenDirectory, tmp_path: Path
) -> None:
    for table in path.glob("*.sst"):
        table.write_bytes(b"garbage!" + table.read_bytes()[8:])
    store = open_directory().open(store_definition(), "id", 3, 0)

    assert store.next_offset == 0
    assert len(aside(tmp_path)) == 1


def test_a_store_that_cannot_be_made_leaves_nothing_behind_to_set_aside(
    path: Path, open_directory: OpenDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_directory()
    with monkeypatch.context() as full_disk:
        full_disk.setattr(Rdict, "write", Mock(side_effect=Exception("IO error: No space left on device")))
        for _ in range(2):
            directory.discard(store_definition(), 3, "it is corrupt")
            with pytest.raises(StoreFailedError, match="No space left"):
                directory.open(store_definition(), "id", 3, 0)

    assert not path.exists()
    assert len(aside(tmp_path)) == 1
    assert directory.open(store_definition(), "id", 3, 0).next_offset == 0


def test_a_directory_that_cannot_be_set_aside_is_a_failed_disk(
    path: Path, open_directory: OpenDirectory, tmp_path: Path
) -> None:
    (tmp_path / "data" / "set-aside").write_text("in the way")

    with pytest.raises(StoreFailedError, match="set-aside"):
        open_directory().open(store_definition(), "another", 3, 0)


def test_a_discarded_directory_is_empty(path: Path, open_directory: OpenDirectory) -> None:
    open_directory().discard(store_definition(), 3, None)

    assert open_directory().open(store_definition(), "id", 3, 0).get(b"a") is None


def test_a_disk_that_refuses_is_reported_and_nothing_is_set_aside(
    path: Path, open_directory: OpenDirectory, tmp_path: Path
) -> None:
    held = open_directory().open(store_definition(), "id", 3, 0)

    with pytest.raises(StoreFailedError, match="lock"):
        open_directory().open(store_definition(), "id", 3, 0)

    assert held.get(b"a") == ROW
    assert aside(tmp_path) == []


def test_rows_the_next_offset_and_what_was_purged_survive_a_restart(open_directory: OpenDirectory) -> None:
    store = open_directory().open(store_definition(), "id", 3, 0)
    store.write({b"a": ROW}, 7, 0)
    store.note_purged(41)
    store.note_purged(17)
    store.note_current(1_700_000_000_123)
    store.close()
    again = open_directory().open(store_definition(), "id", 3, 0)

    assert (again.get(b"a"), again.next_offset) == (ROW, 7)
    assert (again.purged_offset, again.current_ms) == (41, 1_700_000_000_123)


@pytest.mark.parametrize(
    "changed", [{"format": "plain"}, {"format": "plain", "retain": "1h"}, {"history": {"versions": 3}}]
)
def test_a_directory_is_rebuilt_when_the_stores_file_wants_it_otherwise(
    path: Path, open_directory: OpenDirectory, tmp_path: Path, changed: dict[str, object]
) -> None:
    store = open_directory().open(store_definition(**changed), "id", 3, 0)

    assert (store.get(b"a"), store.next_offset) == (None, 0)
    assert aside(tmp_path) == []


def test_a_store_in_memory_has_no_directory_and_starts_empty(open_directory: OpenDirectory, tmp_path: Path) -> None:
    definition = store_definition(engine="memory")
    store = open_directory().open(definition, "id", 3, 0)
    store.write({b"a": ROW}, 2, 0)
    store.close()

    assert open_directory().open(definition, "id", 3, 0).get(b"a") is None
    assert list(tmp_path.iterdir()) == []


def take(directory: Path) -> None:
    """Locks the directory and releases it at once."""
    with locked(directory):
        assert directory.is_dir()


def test_a_second_instance_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    with locked(tmp_path / "data"), pytest.raises(DataDirectoryError, match="another instance uses it"):
        take(tmp_path / "data")

    take(tmp_path / "data")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirectoryError, match=r"QUERY_SERVICE_DATA_DIRECTORY=.*cannot be written to"):
        take(tmp_path / "file" / "data")


@pytest.mark.parametrize("kept", ["*", "LO*", "[LIM]*"])
def test_a_kill_before_the_first_note_is_no_alarm(open_directory: OpenDirectory, tmp_path: Path, kept: str) -> None:
    path, alarms = tmp_path / "data" / "s" / "3", list[bool]()
    path.parent.mkdir(parents=True)
    Rdict(str(path), Options(raw_mode=True)).close()
    for file in {*path.iterdir()} - {*path.glob(kept)}:  # RocksDB's own files come one after the other
        file.unlink()
    directory = open_directory(lambda: alarms.append(True))

    assert directory.resume(store_definition(), "id", 3, 0) is None
    assert not path.exists()
    assert not alarms
    assert directory.open(store_definition(), "id", 3, 0).next_offset == 0


def test_what_was_set_aside_goes_in_time_and_the_last_of_a_partition_stays_longest(
    open_directory: OpenDirectory, tmp_path: Path, wall: ManualClock
) -> None:
    directory = open_directory()
    for partition, wait_s in ((3, 100), (3, 100), (4, 0)):
        directory.open(store_definition(), "id", partition, 0).close()
        directory.discard(store_definition(), partition, "a test says so")
        wall.now += wait_s

    def left() -> list[str]:
        return sorted(path.name.rpartition("-")[0] for path in (tmp_path / "data" / "set-aside").iterdir())

    directory.prune_set_aside(1000)
    assert left() == ["s-3", "s-4"]

    wall.now += 950
    directory.prune_set_aside(1000)
    assert left() == ["s-4"]
