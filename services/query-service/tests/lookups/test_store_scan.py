"""Pages of a whole store, over fake partitions."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.errors import BadTokenError, NotServedError
from query_service.lookups import page_token
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.page_token import Cursor
from query_service.lookups.request_checks import Limits
from query_service.lookups.store_scan import store_page
from query_service.testing import ManualClock, put
from statecast.query.v1 import query_service_pb2 as query

OTHER = Member("query-2", "h:1", "h:2", 1)
STORE = "orders-by-key"


class Partitions:
    """Partitions of groups without members, that are read as local_scan reads them."""

    def __init__(self, rows: dict[str, int]) -> None:
        self.rows = rows

    async def read(self, request: query.ScanStatesRequest, partition: int) -> query.ScanStatesResponse:
        cursor = page_token.decode(request, request.page_token)
        after = cursor.last_key.decode() if cursor else ""
        left = sorted(row for row, place in self.rows.items() if place == partition and row > after)
        answer = query.ScanStatesResponse()
        answer.freshness.partition = partition
        for row in left[: request.page_size]:
            answer.states.add().key.group = row
        if len(left) > request.page_size:
            answer.next_page_token = page_token.encode(request, Cursor(answer.states[-1].key.group.encode()))
        return answer


Rows = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 3), max_size=40)


@given(stay=Rows, come=st.lists(Rows, max_size=5), size=st.integers(1, 9))
def test_every_row_that_stays_is_read_exactly_once_and_in_order(
    stay: dict[str, int], come: list[dict[str, int]], size: int
) -> None:
    async def read_all() -> list[str]:
        partitions = Partitions(dict(stay))
        request = query.ScanStatesRequest(store="s")
        seen: list[str] = []
        writes = iter(come)
        while True:
            cursor = page_token.decode(request, request.page_token)
            answer = await store_page(request, cursor, range(4), size, partitions.read)
            seen += [state.key.group for state in answer.states]
            if not answer.next_page_token:
                return seen
            request.page_token = answer.next_page_token
            partitions.rows = {**next(writes, {}), **stay}

    seen = asyncio.run(read_all())

    assert [row for row in seen if row in stay] == sorted(stay)
    assert seen == sorted(set(seen))


async def test_the_failure_of_one_partition_is_that_of_the_page() -> None:
    ended: list[int] = []

    async def read(request: query.ScanStatesRequest, partition: int) -> query.ScanStatesResponse:
        if partition == 2:
            raise NotServedError("still reading")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(partition)
        raise AssertionError

    with pytest.raises(NotServedError):
        await store_page(query.ScanStatesRequest(store="s"), None, range(4), 10, read)
    await asyncio.sleep(0)

    assert ended == [0, 1, 3]


class Job:
    """A scan of what query-1 owns, on real stores."""

    def __init__(self, view: View, clock: ManualClock) -> None:
        self.view = view
        self.lookup = LocalLookup(view, Limits(10, 100, 3, 10), clock)
        self.request = query.ScanStatesRequest(store=STORE, local_only=True)

    async def page(self) -> query.ScanStatesResponse:
        answer = await self.lookup.scan(self.request, 0.0)
        self.request.page_token = answer.next_page_token
        return answer

    async def rest(self) -> list[str]:
        rows: list[str] = []
        while True:
            answer = await self.page()
            rows += [state.key.group for state in answer.states]
            if not answer.next_page_token:
                return rows


@pytest.fixture
async def job(serving_view: View, clock: ManualClock) -> Job:
    """Query-1 holds all four partitions, and owns those that it ranks first for among two instances."""
    for partition in range(4):
        rows = [put(f"{partition}-{number:02d}", 1, number) for number in range(10)]
        serving_view.hosts[STORE, partition].apply(rows, 10)
    serving_view.shard_map = ShardMap(frozenset({serving_view.me, OTHER}), 2)
    return Job(serving_view, clock)


async def test_local_only_reads_what_the_instance_owns(job: Job) -> None:
    owned = job.view.owned(STORE)
    first = await job.page()

    assert 0 < len(owned) < 4
    assert {each.partition for each in first.shards} == owned
    assert len(first.states) + len(await job.rest()) == 10 * len(owned)


async def test_a_change_of_members_neither_adds_nor_takes_partitions_of_a_scan_under_way(job: Job) -> None:
    owned = job.view.owned(STORE)
    first = await job.page()
    job.view.shard_map = ShardMap(frozenset({job.view.me}), 2)
    rest = await job.rest()

    assert {row.split("-")[0] for row in rest} == {str(partition) for partition in owned}
    assert len(first.states) + len(rest) == 10 * len(owned)


async def test_a_scan_whose_partition_has_moved_away_says_so(job: Job) -> None:
    await job.page()
    del job.view.hosts[STORE, min(job.view.owned(STORE))]

    with pytest.raises(NotServedError, match="does not hold partition"):
        await job.page()


@pytest.mark.parametrize("partitions", [None, frozenset[int](), frozenset({4})])
async def test_a_token_with_partitions_that_there_are_not_is_refused(
    job: Job, partitions: frozenset[int] | None
) -> None:
    job.request.page_token = page_token.encode(job.request, Cursor(b"a", partitions))

    with pytest.raises(BadTokenError, match="page_token: it names partitions"):
        await job.page()


async def test_an_instance_that_owns_nothing_has_an_empty_page(job: Job) -> None:
    job.view.shard_map = ShardMap(frozenset({OTHER}), 2)
    answer = await job.page()

    assert not answer.states
    assert not answer.next_page_token
    assert not answer.shards


async def test_an_instance_outside_of_the_group_does_not_know_what_it_owns(job: Job) -> None:
    job.view.shard_map = ShardMap(frozenset(), 2)

    with pytest.raises(NotServedError, match="has not joined"):
        await job.page()
