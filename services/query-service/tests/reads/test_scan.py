"""Pages of one partition."""

from typing import Any

import pytest

from query_service.errors import InvalidRequestError
from query_service.reads import Page, Row, page_token
from query_service.reads.page_token import Cursor
from query_service.reads.scan import partition_page
from query_service.storage.replica import Replica
from query_service.storage.store_keys import key_parts
from statecast.query.v1.query_pb2 import State
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from testkit.query_service import FakeRecord, ManualClock, OpenReplica, put, tombstone


@pytest.fixture
async def replica(open_replica: OpenReplica) -> Replica:
    """Five members of the group g with sort values 1 to 5, and neighbours."""
    opened = open_replica()
    keys = ["f\x001\x00m", *(f"g\x00{sort}\x00m" for sort in range(1, 6)), "g0\x001\x00m", "h\x001\x00m"]
    opened.apply([put(key, 1, offset) for offset, key in enumerate(keys)], len(keys))
    return opened


def read_page(replica: Replica, query: ScanStatesRequest, size: int) -> Page:
    cursor = page_token.decode_scan(query, query.page_token)
    return partition_page(query, replica, cursor, size, replica.freshness("query-1"))


def sort_of(row: Row) -> str:
    return key_parts(row.key)[1]


def payload_of(row: Row) -> bytes:
    return State.FromString(row.state).payload


def pages(replica: Replica, size: int, **fields: Any) -> list[list[str]]:
    """Reads to the end and returns the sort values of each page."""
    query = ScanStatesRequest(store="s", group="g", **fields)
    read: list[list[str]] = []
    while True:
        page = read_page(replica, query, size)
        read.append([sort_of(row) for row in page.rows])
        if not page.next_page_token:
            return read
        query.page_token = page.next_page_token


@pytest.mark.parametrize(
    ("size", "fields", "expected"),
    [
        (2, {}, [["1", "2"], ["3", "4"], ["5"]]),
        (5, {}, [["1", "2", "3", "4", "5"]]),
        (2, {"reverse": True}, [["5", "4"], ["3", "2"], ["1"]]),
        (2, {"sort_from": "2", "sort_to": "5"}, [["2", "3"], ["4"]]),
        (9, {"sort_from": "2", "sort_to": "5", "reverse": True}, [["4", "3", "2"]]),
        (9, {"sort_from": "3", "sort_to": "3"}, [[]]),
    ],
    ids=["pages", "one-full-page", "reverse", "part", "part-in-reverse", "empty-part"],
)
async def test_a_group_or_a_part_of_it_is_read_page_by_page_without_its_neighbours(
    replica: Replica, size: int, fields: dict[str, Any], expected: list[list[str]]
) -> None:
    assert pages(replica, size, **fields) == expected


async def test_a_prefix_reads_the_sort_values_that_begin_with_it(replica: Replica) -> None:
    replica.apply([put(f"g\x00{sort}\x00m", 1, 20) for sort in ("20", "2é", "2\U0010ffff")] + [put("g", 1, 20)], 21)

    assert pages(replica, 9)[0][0] == "", "the value of the group itself"
    assert pages(replica, 2, sort_prefix="2") == [["2", "20"], ["2é", "2\U0010ffff"]]
    assert pages(replica, 9, sort_prefix="2", reverse=True) == [["2\U0010ffff", "2é", "20", "2"]]
    assert pages(replica, 9, sort_prefix="2", sort_from="20", sort_to="2é") == [["20"]]
    assert pages(replica, 9, sort_prefix="2", sort_from="3") == [[]]
    assert pages(replica, 9, sort_prefix="2", sort_from="3", reverse=True) == [[]]


async def test_without_a_group_all_rows_of_the_partition_are_read(replica: Replica) -> None:
    page = read_page(replica, ScanStatesRequest(store="s"), 10)

    assert [key_parts(row.key)[0] for row in page.rows] == ["f", *["g"] * 5, "g0", "h"]


async def test_deleted_members_are_left_out_and_make_no_page_short(replica: Replica) -> None:
    gone = ["3", *(f"0{number:03d}" for number in range(25))]
    replica.apply([tombstone(f"g\x00{sort}\x00m", 2, 20 + at) for at, sort in enumerate(gone)], 46)

    assert pages(replica, 2) == [["1", "2"], ["4", "5"]]


@pytest.mark.parametrize(("expired", "empty_pages"), [(25, 0), (2500, 2)])
async def test_only_a_page_of_a_thousand_expired_rows_is_empty_and_goes_on(
    open_replica: OpenReplica, wall: ManualClock, expired: int, empty_pages: int
) -> None:
    replica = open_replica(format="plain", message="bytes", retain="1h")
    now_ms = int(wall.now * 1000)
    for number in range(expired + 1):
        key = f"g\x00{number:04d}\x00m".encode()
        record_ms = now_ms + (1000 if number == expired else 0)
        replica.apply([FakeRecord(key, b"x", number, record_ms=record_ms)], number + 1)
    wall.now += 3600.5

    assert pages(replica, 1) == [[]] * empty_pages + [[f"{expired:04d}"]]


async def test_a_page_sees_what_was_applied_since_the_page_before(replica: Replica) -> None:
    query = ScanStatesRequest(store="s", group="g")
    first = read_page(replica, query, 2)
    replica.apply([put("g\x004\x00m", 2, 30, b"changed"), put("g\x001x\x00m", 1, 31)], 32)
    query.page_token = first.next_page_token
    second = read_page(replica, query, 9)

    assert [(sort_of(row), payload_of(row)) for row in second.rows] == [
        ("3", b"row"),
        ("4", b"changed"),
        ("5", b"row"),
    ]


async def test_a_group_of_one_value_is_a_page_of_one(replica: Replica) -> None:
    replica.apply([put("single", 1, 40, b"alone")], 41)
    page = read_page(replica, ScanStatesRequest(store="s", group="single"), 10)

    assert [(*key_parts(row.key)[:2], payload_of(row)) for row in page.rows] == [("single", "", b"alone")]


async def test_a_token_outside_of_the_range_is_refused(replica: Replica) -> None:
    with pytest.raises(InvalidRequestError, match="outside the range"):
        partition_page(ScanStatesRequest(store="s", group="g"), replica, Cursor(b"z"), 10, replica.freshness("query-1"))


async def test_a_page_ends_before_it_would_pass_a_megabyte_and_a_row_that_does_is_alone(replica: Replica) -> None:
    sizes = [400_000, 400_000, 400_000, 3_900_000, 10]
    rows = [put(f"g\x007{number}\x00m", 1, 50 + number, b"x" * size) for number, size in enumerate(sizes)]
    replica.apply(rows, 55)

    assert pages(replica, 100, sort_prefix="7") == [["70", "71"], ["72"], ["73"], ["74"]]


async def test_a_page_ends_after_a_megabyte_of_keys(open_replica: OpenReplica) -> None:
    replica = open_replica()
    replica.apply([put(f"{number}{'k' * 300_000}", 1, number, b"") for number in range(9)], 9)
    page = read_page(replica, ScanStatesRequest(store="s"), 100)

    assert len(page.rows) == 3
    assert page.next_page_token
