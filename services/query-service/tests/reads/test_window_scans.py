"""Windows: some groups, and of each the rows between two sort values, in both engines as in a plain model."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from query_service.reads import Page, page_token
from query_service.reads.scan import partition_page
from query_service.storage.replica import Replica
from query_service.storage.store_keys import key_parts
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from testkit.query_service import OpenReplica, put, tombstone

Parts = tuple[str, str, str]

SIGNS = "ab\x01é\U0010ffff"
GROUPS = st.one_of(st.just(""), st.text(SIGNS, max_size=3))
SORTS = st.one_of(st.just(""), st.text("013é", max_size=2))


@pytest.fixture(scope="module")
def rows() -> list[Parts]:
    """A hundred groups of all kinds: of one value, of many, and of both."""
    random = Random(7)
    groups = {"".join(random.choices(SIGNS, k=random.randint(1, 3))) for _ in range(100)}
    singles = {(group, "", "") for group in groups if random.random() < 0.3}
    sorts = ["0", "1", "10", "13", "3", "30", "é"]
    members = {(group, random.choice(sorts), f"m{n}") for group in groups for n in range(random.randint(0, 9))}
    return sorted(singles | members, key=encoded)


@pytest.fixture(params=["rocksdb", "memory"])
async def replica(request: pytest.FixtureRequest, open_replica: OpenReplica, rows: list[Parts]) -> Replica:
    """All rows, and one more in each group that was deleted."""
    opened = open_replica(engine=request.param)
    deleted = sorted({(group, "1", "deleted") for group, _, _ in rows})
    opened.apply([put(text_of(parts), 1, offset) for offset, parts in enumerate(rows + deleted)], 1000)
    opened.apply([tombstone(text_of(parts), 2, 1000 + offset) for offset, parts in enumerate(deleted)], 2000)
    return opened


def text_of(parts: Parts) -> str:
    return "\0".join(filter(None, parts))


def encoded(parts: Parts) -> bytes:
    return text_of(parts).encode()


def read_pages(replica: Replica, query: ScanStatesRequest, size: int) -> Iterator[Page]:
    while True:
        cursor = page_token.decode_scan(query, query.page_token)
        page = partition_page(query, replica, cursor, size, replica.freshness("query-1"))
        yield page
        if not page.next_page_token:
            return
        query.page_token = page.next_page_token


def read_all(replica: Replica, size: int, **fields: Any) -> list[Parts]:
    request = ScanStatesRequest(store="s", **fields)
    return [key_parts(row.key) for page in read_pages(replica, request, size) for row in page.rows]


@given(group_from=GROUPS, group_to=GROUPS, sort_from=SORTS, sort_to=SORTS, prefix=SORTS, size=st.integers(1, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
async def test_a_window_has_the_rows_of_the_model(
    replica: Replica,
    rows: list[Parts],
    group_from: str,
    group_to: str,
    sort_from: str,
    sort_to: str,
    prefix: str,
    size: int,
) -> None:
    def holds(row: Parts) -> bool:
        group, sort, _ = (part.encode() for part in row)
        in_groups = group_from.encode() <= group and (not group_to or group < group_to.encode())
        in_sorts = sort_from.encode() <= sort and (not sort_to or sort < sort_to.encode())
        return in_groups and in_sorts and sort.startswith(prefix.encode())

    window = {"group_from": group_from, "group_to": group_to, "sort_from": sort_from, "sort_to": sort_to}
    expected = [row for row in rows if holds(row)]

    assert read_all(replica, size, sort_prefix=prefix, **window) == expected
    assert read_all(replica, size, sort_prefix=prefix, reverse=True, **window) == expected[::-1]


@pytest.mark.parametrize("engine", ["rocksdb", "memory"])
@pytest.mark.parametrize("reverse", [False, True])
async def test_a_window_reads_little_beside_its_rows(open_replica: OpenReplica, engine: str, reverse: bool) -> None:
    opened = open_replica(engine=engine)
    rows = [(f"g{group}", f"{sort:04d}", "m") for group in range(5) for sort in range(2000)]
    opened.apply([put(text_of(row), 1, offset) for offset, row in enumerate(rows)], len(rows))
    window = ScanStatesRequest(store="s", group_from="g1", group_to="g4", sort_from="1000", sort_to="1002")
    window.reverse = reverse
    pages = [[key_parts(row.key)[:2] for row in page.rows] for page in read_pages(opened, window, 100)]
    expected = [(f"g{group}", sort) for group in (1, 2, 3) for sort in ("1000", "1001")]

    assert pages == [expected[::-1] if reverse else expected]


async def test_a_page_ends_after_a_thousand_groups_without_a_row_in_the_window(open_replica: OpenReplica) -> None:
    opened = open_replica()
    rows = [(f"g{group:04d}", "2", "m") for group in range(1500)] + [("h", "1", "m")]
    opened.apply([put(text_of(row), 1, offset) for offset, row in enumerate(rows)], len(rows))
    pages = list(read_pages(opened, ScanStatesRequest(store="s", sort_to="2"), 10))

    assert [len(page.rows) for page in pages] == [0, 1]


async def test_a_window_of_nothing_is_one_empty_page(replica: Replica) -> None:
    request = ScanStatesRequest(store="s", sort_from="1", sort_to="1")

    assert [page.rows for page in read_pages(replica, request, 1)] == [[]]
