"""Pages of a whole store: merged, over fake partitions, and on real stores."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import BadTokenError, NotServedError
from query_service.reads import Page, Row, page_token
from query_service.reads.local import LocalReads
from query_service.reads.page_token import Cursor
from query_service.reads.request_checks import Limits
from query_service.reads.scan import merge, share_of, store_page
from query_service.storage.store_keys import key_parts
from statecast.query.v1.query_pb2 import Freshness
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from testkit.query_service import ManualClock, put

OTHER = Member("query-2", "h:1", "h:2", 1)
STORE = "orders-by-key"


class Partitions:
    """Partitions in memory, of groups without members; `read` has the contract of partition_page."""

    def __init__(self, rows: dict[str, int]) -> None:
        self.rows = rows

    async def read(self, query: ScanStatesRequest, partition: int) -> Page:
        cursor = page_token.decode_scan(query, query.page_token)
        after = cursor.last_key.decode() if cursor else ""
        left = sorted(row for row, place in self.rows.items() if place == partition and row > after)
        rows = [row_of(name) for name in left[: query.page_size]]
        more = len(left) > query.page_size
        token = page_token.encode_scan(query, Cursor(rows[-1].key)) if more else ""
        return Page(rows, token, Freshness(partition=partition, answered_by="query-1"))


def row_of(group: str) -> Row:
    return Row(group.encode(), b"row")


Rows = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 3), max_size=40)


@given(stay=Rows, come=st.lists(Rows, max_size=5), size=st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_row_that_stays_is_read_exactly_once_and_in_order(
    view: View, stay: dict[str, int], come: list[dict[str, int]], size: int
) -> None:
    async def read_all() -> list[str]:
        partitions = Partitions(dict(stay))
        query = ScanStatesRequest(store=STORE)
        keys: list[str] = []
        writes = iter(come)
        while True:
            page = await store_page(query, view, Limits(10, size, size, 10, 1 << 20), partitions.read)
            keys += [row.key.decode() for row in page.rows]
            if not page.next_page_token:
                return keys
            query.page_token = page.next_page_token
            partitions.rows = {**next(writes, {}), **stay}

    keys = asyncio.run(read_all())

    assert [row for row in keys if row in stay] == sorted(stay)
    assert keys == sorted(set(keys))


async def test_the_failure_of_one_partition_is_that_of_the_page(view: View) -> None:
    ended: list[int] = []

    async def read(query: ScanStatesRequest, partition: int) -> Page:
        if partition == 2:
            raise NotServedError("still reading")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(partition)
        raise AssertionError

    with pytest.raises(NotServedError):
        await store_page(ScanStatesRequest(store=STORE), view, Limits(10, 10, 10, 10, 1 << 20), read)
    await asyncio.sleep(0)

    assert ended == [0, 1, 3]


class Job:
    """A scan of query-1's own rows on real stores."""

    def __init__(self, view: View, clock: ManualClock) -> None:
        self.view = view
        self.lookup = LocalReads(view, Limits(10, 100, 3, 10, 1 << 20), clock)
        self.query = ScanStatesRequest(store=STORE, local_only=True)

    async def page(self) -> Page:
        page = await self.lookup.scan(self.query, 0.0)
        self.query.page_token = page.next_page_token
        return page

    async def rest(self) -> list[str]:
        rows: list[str] = []
        while True:
            page = await self.page()
            rows += [key_parts(row.key)[0] for row in page.rows]
            if not page.next_page_token:
                return rows


@pytest.fixture
async def job(serving_view: View, clock: ManualClock) -> Job:
    """Query-1 holds all four partitions, and owns those for which it ranks first of two instances."""
    for partition in range(4):
        rows = [put(f"{partition}-{number:02d}", 1, number) for number in range(10)]
        serving_view.replicas[STORE, partition].apply(rows, 10)
    serving_view.shard_map = ShardMap(frozenset({serving_view.me, OTHER}), 2)
    return Job(serving_view, clock)


async def test_local_only_reads_what_the_instance_owns(job: Job) -> None:
    owned = job.view.owned(STORE)
    first = await job.page()

    assert 0 < len(owned) < 4
    assert {each.partition for each in first.shards} == owned
    assert len(first.rows) + len(await job.rest()) == 10 * len(owned)


async def test_a_change_of_members_neither_adds_nor_takes_partitions_of_a_scan_under_way(job: Job) -> None:
    owned = job.view.owned(STORE)
    first = await job.page()
    job.view.shard_map = ShardMap(frozenset({job.view.me}), 2)
    rest = await job.rest()

    assert {row.split("-")[0] for row in rest} == {str(partition) for partition in owned}
    assert len(first.rows) + len(rest) == 10 * len(owned)


async def test_a_scan_whose_partition_has_moved_away_says_so(job: Job) -> None:
    await job.page()
    del job.view.replicas[STORE, min(job.view.owned(STORE))]

    with pytest.raises(NotServedError, match="does not hold partition"):
        await job.page()


@pytest.mark.parametrize("partitions", [None, 0, 1 << 4])
async def test_a_token_with_partitions_that_there_are_not_is_refused(job: Job, partitions: int | None) -> None:
    job.query.page_token = page_token.encode_scan(job.query, Cursor(b"a", partitions))

    with pytest.raises(BadTokenError, match="page_token: it names partitions"):
        await job.page()


async def test_an_instance_that_owns_nothing_has_an_empty_page(job: Job) -> None:
    job.view.shard_map = ShardMap(frozenset({OTHER}), 2)
    page = await job.page()

    assert not page.rows
    assert not page.next_page_token
    assert not page.shards


async def test_an_instance_outside_of_the_group_does_not_know_what_it_owns(job: Job) -> None:
    job.view.shard_map = ShardMap(frozenset(), 2)

    with pytest.raises(NotServedError, match="has not joined"):
        await job.page()


def scan_query(*, reverse: bool = False) -> ScanStatesRequest:
    return ScanStatesRequest(store="s", reverse=reverse)


def page(*groups: str, end: str | None = None, reverse: bool = False) -> Page:
    """Returns a page of one partition that has been read up to a key, or to the end."""
    token = "" if end is None else page_token.encode_scan(scan_query(reverse=reverse), Cursor(end.encode()))
    return Page([row_of(group) for group in groups], token, None)


def merged(
    *pages: Page, size: int = 10, max_bytes: int = 1000, reverse: bool = False
) -> tuple[list[str], bytes | None]:
    rows, last_key = merge(scan_query(reverse=reverse), pages, size, max_bytes)
    return [row.key.decode() for row in rows], last_key


def test_rows_stand_in_the_order_of_their_keys() -> None:
    assert merged(page("a", "d"), page("b", "c")) == (["a", "b", "c", "d"], None)
    assert merged(page("d", "a"), page("c", "b"), reverse=True) == (["d", "c", "b", "a"], None)


def test_nothing_is_given_beyond_what_every_partition_has_been_read_through() -> None:
    assert merged(page("a", "d", end="d"), page("b", "c", end="c")) == (["a", "b", "c"], b"c")
    assert merged(page("d", "a", end="a", reverse=True), page("c", "b"), reverse=True)[0] == ["d", "c", "b", "a"]
    assert merged(page("d", end="d", reverse=True), page("c"), reverse=True) == (["d"], b"d")


def test_a_full_page_goes_on_after_its_last_row() -> None:
    assert merged(page("a", "c"), page("b", "d"), size=3) == (["a", "b", "c"], b"c")


def test_a_page_that_ends_with_the_last_row_has_no_next_one() -> None:
    assert merged(page("a"), page("b"), size=2) == (["a", "b"], None)


def test_a_large_page_ends_early() -> None:
    assert merged(page("a", "c"), page("b"), max_bytes=2 * len(row_of("a").state)) == (["a", "b"], b"b")
    assert merged(page("a", "c"), page("b"), max_bytes=1) == (["a"], b"a")


def test_a_page_of_deletions_alone_goes_on_behind_them() -> None:
    assert merged(page(end="k"), page("m")) == ([], b"k")


def test_each_partition_is_asked_for_its_share_and_a_half() -> None:
    assert share_of(1000, 1) == 1000
    assert share_of(1000, 4) == 391
    assert share_of(10, 4) == 10
    assert share_of(10, 0) == 10
