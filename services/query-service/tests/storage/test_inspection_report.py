"""An inspected data directory, as people and programs see it."""

import json

from query_service.storage.inspection import InspectedPartition, Inspection, OtherDirectory
from query_service.storage.inspection_report import as_json, as_table


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


FOUND = Inspection(
    "data",
    (partition(0, 7), partition(1, 1_234_567)),
    (OtherDirectory("set-aside/x-0-1", 5, "set aside; it may be removed"),),
    (OtherDirectory("x/1", 6, "its format is 999, not 1"),),
)


def test_the_table_lines_up_and_sums_up() -> None:
    lines = as_table(FOUND).splitlines()
    heading, first, second, total = lines[2:6]

    assert first[: heading.index("deletions")].split() == ["orders-by-key", "0", "7"]
    assert second.split()[:7] == ["orders-by-key", "1", "1,234,567", "2", "3", "12,345", "1,000,000"]
    assert second.endswith("the-topic  2023-11-14T22:13:20.123+00:00")
    assert total.split() == ["all", "2", "1,234,574", "4", "6", "2,000,000"]


def test_what_is_no_partition_stands_below_with_its_reason() -> None:
    assert as_table(FOUND).splitlines()[6:] == [
        "",
        "set aside:",
        "  set-aside/x-0-1  5 bytes: set aside; it may be removed",
        "",
        "not readable:",
        "  x/1  6 bytes: its format is 999, not 1",
    ]


def test_an_empty_directory_says_so() -> None:
    assert as_table(Inspection("data", (), (), ())) == "data\n\nno partitions on disk\n"


def test_programs_get_one_object_with_plain_numbers() -> None:
    found = json.loads(as_json(FOUND))

    assert found["directory"] == "data"
    assert found["partitions"][1]["rows"] == 1_234_567
    assert found["unreadable"] == [{"path": "x/1", "size": 6, "reason": "its format is 999, not 1"}]
    assert len(found["set_aside"]) == 1
