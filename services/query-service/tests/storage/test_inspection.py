"""A data directory is inspected without a change to it, and reported on."""

import json
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from query_service.errors import DataDirectoryError
from query_service.storage import store_keys
from query_service.storage.inspection import InspectedPartition, Inspection, OtherDirectory, as_json, as_table, inspect
from query_service.storage.store import PartitionStore
from query_service.storage.store_keys import DELETED, HEADER
from testkit.query_service import ManualClock, OpenDirectory, store_definition


def value(sequence: int, offset: int, flags: int = 0) -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, flags) + (b"" if flags else b"row")


@pytest.fixture
def store(open_directory: OpenDirectory) -> PartitionStore:
    """An open store of partition 3 with two rows, one deletion and one older version."""
    definition = store_definition("orders-by-key", history={"versions": 5})
    store = open_directory().open(definition, "the-topic", 3, 0)
    store.write({b"a": value(1, 1), b"b": value(1, 2), b"c": value(1, 3, DELETED)}, 4, arrived_ms=0)
    store.write({b"a": value(2, 4)}, 5, 0, [(b"a", value(1, 1), value(2, 4))])
    return store


def files_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("running", [True, False])
def test_a_partition_is_counted_also_while_an_instance_uses_it(
    store: PartitionStore, tmp_path: Path, running: bool, wall: ManualClock
) -> None:
    if not running:
        store.close()
    before = files_of(tmp_path / "data")
    (inspected,) = inspect(tmp_path / "data").partitions

    assert (inspected.store, inspected.partition, inspected.topic_id) == ("orders-by-key", 3, "the-topic")
    assert (inspected.rows, inspected.deletions, inspected.versions, inspected.next_offset) == (2, 1, 1, 5)
    assert (inspected.format, inspected.kind, inspected.current_ms) == (
        "2",
        "state-record versions",
        int(wall.now * 1000),
    )
    assert inspected.size > 0
    assert files_of(tmp_path / "data") == before
    store.close()


def test_what_cannot_be_read_is_reported_and_the_rest_is_read(
    store: PartitionStore, tmp_path: Path, open_directory: OpenDirectory
) -> None:
    root = tmp_path / "data"
    newer = Rdict(str(root / "orders-by-key" / "4"), Options(raw_mode=True))
    newer[store_keys.FORMAT_KEY] = b"999"
    newer.close()
    foreign = Rdict(str(root / "orders-by-key" / "5"), Options(raw_mode=True))
    foreign.close()
    open_directory().open(store_definition("orders-by-key"), "the-topic", 6, 0).close()
    (root / "orders-by-key" / "6" / "CURRENT").write_bytes(b"garbage")
    (root / "orders-by-key" / "thesis").mkdir()
    inspection = inspect(root)

    assert [each.partition for each in inspection.partitions] == [3]
    assert [each.path for each in inspection.unreadable] == [
        f"orders-by-key/{name}" for name in ("4", "5", "6", "thesis")
    ]
    reasons = [each.reason for each in inspection.unreadable]
    assert reasons[0] == "its format is 999, not 2"
    assert reasons[1] == "it is not a store of this service"
    assert reasons[2].startswith("it cannot be read: ")
    assert reasons[3] == "it is not a partition of a store"
    store.close()


def test_what_was_set_aside_is_listed(store: PartitionStore, tmp_path: Path, open_directory: OpenDirectory) -> None:
    store.close()
    open_directory().discard(store_definition("orders-by-key"), 3, "it is corrupt")
    inspection = inspect(tmp_path / "data")

    assert (inspection.partitions, inspection.unreadable) == ((), ())
    (aside,) = inspection.set_aside
    assert aside.path.startswith("set-aside/orders-by-key-3-")
    assert aside.size > 0


def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="nowhere is not a directory: give the QUERY_SERVICE_DATA_DIRECTORY"):
        inspect(tmp_path / "nowhere")


def partition(number: int, rows: int) -> InspectedPartition:
    return InspectedPartition(
        store="orders-by-key",
        partition=number,
        format="1",
        kind="state-record",
        topic_id="the-topic",
        next_offset=12_345,
        rows=rows,
        deletions=2,
        versions=3,
        size=1_000_000,
        current_ms=1_700_000_000_123,
    )


INSPECTION = Inspection(
    "data",
    (partition(0, 7), partition(1, 1_234_567)),
    (OtherDirectory("set-aside/x-0-1", 5, "set aside; it may be removed"),),
    (OtherDirectory("x/1", 6, "its format is 999, not 2"),),
)


def test_the_table_lines_up_and_sums_up() -> None:
    lines = as_table(INSPECTION).splitlines()
    heading, first, second, total = lines[2:6]

    assert first[: heading.index("deletions")].split() == ["orders-by-key", "0", "7"]
    assert second.split()[:7] == ["orders-by-key", "1", "1,234,567", "2", "3", "12,345", "1,000,000"]
    assert second.endswith("the-topic  2023-11-14T22:13:20.123+00:00")
    assert total.split() == ["all", "2", "1,234,574", "4", "6", "2,000,000"]


def test_what_is_no_partition_is_listed_below_with_its_reason() -> None:
    assert as_table(INSPECTION).splitlines()[6:] == [
        "",
        "set aside:",
        "  set-aside/x-0-1  5 bytes: set aside; it may be removed",
        "",
        "not readable:",
        "  x/1  6 bytes: its format is 999, not 2",
    ]


def test_an_empty_directory_says_so() -> None:
    assert as_table(Inspection("data", (), (), ())) == "data\n\nno partitions on disk\n"


def test_programs_get_one_object_with_plain_numbers() -> None:
    document = json.loads(as_json(INSPECTION))

    assert document["directory"] == "data"
    assert document["partitions"][1]["rows"] == 1_234_567
    assert document["unreadable"] == [{"path": "x/1", "size": 6, "reason": "its format is 999, not 2"}]
    assert len(document["set_aside"]) == 1
