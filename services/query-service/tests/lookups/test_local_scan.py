"""Pages of a group."""

from collections.abc import Callable

import pytest

from query_service.errors import InvalidRequestError
from query_service.lookups import page_token
from query_service.lookups.local_scan import fill_page
from query_service.storage.partition_host import PartitionHost
from query_service.testing import put, tombstone
from statecast.query.v1 import query_service_pb2 as query

OpenHost = Callable[..., PartitionHost]


@pytest.fixture
async def host(open_host: OpenHost) -> PartitionHost:
    """Five members of the group g with sort values 1 to 5, and neighbours."""
    opened = open_host()
    keys = ["f\x001\x00m", *(f"g\x00{sort}\x00m" for sort in range(1, 6)), "g0\x001\x00m", "h\x001\x00m"]
    opened.apply([put(key, 1, offset) for offset, key in enumerate(keys)], len(keys))
    return opened


def last_key(request: query.ScanStatesRequest) -> bytes | None:
    cursor = page_token.decode(request, request.page_token)
    return None if cursor is None else cursor.last_key


def pages(host: PartitionHost, size: int, **fields: object) -> list[list[str]]:
    """Reads to the end and returns the sort values of each page."""
    request = query.ScanStatesRequest(store="s", group="g", **fields)  # type: ignore[arg-type]
    read: list[list[str]] = []
    while True:
        answer = query.ScanStatesResponse()
        fill_page(answer, request, host, last_key(request), size)
        read.append([state.key.sort for state in answer.states])
        if not answer.next_page_token:
            return read
        request.page_token = answer.next_page_token


async def test_a_group_is_read_page_by_page_without_its_neighbours(host: PartitionHost) -> None:
    assert pages(host, 2) == [["1", "2"], ["3", "4"], ["5"]]


async def test_the_last_full_page_has_no_next_one(host: PartitionHost) -> None:
    assert pages(host, 5) == [["1", "2", "3", "4", "5"]]


async def test_in_reverse_the_highest_come_first(host: PartitionHost) -> None:
    assert pages(host, 2, reverse=True) == [["5", "4"], ["3", "2"], ["1"]]


async def test_a_sub_range_includes_its_start_and_excludes_its_end(host: PartitionHost) -> None:
    assert pages(host, 2, sort_from="2", sort_to="5") == [["2", "3"], ["4"]]
    assert pages(host, 9, sort_from="2", sort_to="5", reverse=True) == [["4", "3", "2"]]
    assert pages(host, 9, sort_from="3", sort_to="3") == [[]]


async def test_a_prefix_reads_the_sort_values_that_begin_with_it(host: PartitionHost) -> None:
    host.apply([put(f"g\x00{sort}\x00m", 1, 20) for sort in ("20", "2é", "2\U0010ffff")], 21)

    assert pages(host, 2, sort_prefix="2") == [["2", "20"], ["2é", "2\U0010ffff"]]
    assert pages(host, 9, sort_prefix="2", reverse=True) == [["2\U0010ffff", "2é", "20", "2"]]
    assert pages(host, 9, sort_prefix="2", sort_from="20", sort_to="2é") == [["20"]]
    assert pages(host, 9, sort_prefix="2", sort_from="3") == [[]]
    assert pages(host, 9, sort_prefix="2", sort_from="3", reverse=True) == [[]]


async def test_without_a_group_all_rows_of_the_partition_are_read(host: PartitionHost) -> None:
    request = query.ScanStatesRequest(store="s")
    answer = query.ScanStatesResponse()
    fill_page(answer, request, host, None, 10)

    assert [state.key.group for state in answer.states] == ["f", *["g"] * 5, "g0", "h"]


async def test_deleted_members_are_left_out(host: PartitionHost) -> None:
    host.apply([tombstone("g\x003\x00m", 2, 20)], 21)

    assert pages(host, 9) == [["1", "2", "4", "5"]]


async def test_a_page_full_of_deletions_is_short_and_goes_on(host: PartitionHost) -> None:
    host.apply([tombstone(f"g\x000{number:03d}\x00m", 2, 20 + number) for number in range(25)], 45)

    assert [sort for page in pages(host, 1) for sort in page] == ["1", "2", "3", "4", "5"]
    assert pages(host, 1)[:2] == [[], []]


async def test_a_page_sees_what_was_applied_since_the_page_before(host: PartitionHost) -> None:
    request = query.ScanStatesRequest(store="s", group="g")
    first = query.ScanStatesResponse()
    fill_page(first, request, host, None, 2)
    host.apply([put("g\x004\x00m", 2, 30, b"changed"), put("g\x001x\x00m", 1, 31)], 32)
    request.page_token = first.next_page_token
    second = query.ScanStatesResponse()
    fill_page(second, request, host, last_key(request), 9)

    assert [(state.key.sort, state.payload) for state in second.states] == [
        ("3", b"row"),
        ("4", b"changed"),
        ("5", b"row"),
    ]


async def test_a_group_of_one_value_is_a_page_of_one(host: PartitionHost) -> None:
    host.apply([put("single", 1, 40, b"alone")], 41)
    answer = query.ScanStatesResponse()
    fill_page(answer, query.ScanStatesRequest(store="s", group="single"), host, None, 10)

    assert [(state.key.group, state.key.sort, state.payload) for state in answer.states] == [("single", "", b"alone")]


async def test_a_token_outside_of_the_range_is_refused(host: PartitionHost) -> None:
    with pytest.raises(InvalidRequestError, match="outside the range"):
        fill_page(query.ScanStatesResponse(), query.ScanStatesRequest(group="g"), host, b"z", 10)


async def test_a_large_page_ends_early(host: PartitionHost) -> None:
    host.apply([put(f"big\x00{number}\x00m", 1, 50 + number, b"x" * 400_000) for number in range(5)], 55)
    answer = query.ScanStatesResponse()
    fill_page(answer, query.ScanStatesRequest(group="big"), host, None, 100)

    assert len(answer.states) == 3
    assert answer.next_page_token
