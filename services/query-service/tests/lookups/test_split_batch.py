"""Batches over several partitions."""

import asyncio

import pytest
from typing_extensions import override

from query_service.cluster.view import View
from query_service.errors import LookupFailedError, NotServedError
from query_service.lookups import BatchQuery, BatchResult, Lookup
from query_service.lookups.split_batch import parts_of, split_batch
from query_service.serving import messages, responses
from query_service.storage.progress import Freshness
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.state.v1 import state_pb2
from testkit.query_service import FakeLookup, ManualClock

GROUPS = [f"order-{number}" for number in range(20)]


class FakeRouting:
    """Asks one lookup per partition, and counts the calls."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lookups: dict[int, Lookup] = {
            partition: FakeLookup(f"query-{partition}", forwarded=True) for partition in range(4)
        }
        self.partitions: list[int] = []

    async def look_up(self, partition: int, query: BatchQuery) -> BatchResult:
        self.partitions.append(partition)
        return await self.lookups[partition].batch(query, 0.0)


class Waiting(FakeLookup):
    """Has no new values until the test sets `news`."""

    def __init__(self, answered_by: str, failure: LookupFailedError | None = None) -> None:
        super().__init__(answered_by, failure, forwarded=True)
        self.news = asyncio.Event()
        self.cancelled = False

    @override
    async def batch(self, query: BatchQuery, deadline: float) -> BatchResult:
        if not query.max_wait_s and not self.news.is_set():
            return BatchResult(freshness=[Freshness(0, 0, 0, 0, 0, self.answered_by)])
        try:
            await self.news.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().batch(query, deadline)


@pytest.fixture
def routing(view: View) -> FakeRouting:
    return FakeRouting(view)


async def answer(
    routing: FakeRouting, groups: list[str], clock: ManualClock, wait: int = 0
) -> query_service_pb2.BatchGetStatesResponse:
    request = query_service_pb2.BatchGetStatesRequest(store="orders-by-key")
    request.keys.extend(query_pb2.KeyQuery(key=state_pb2.StateKey(group=group)) for group in groups)
    batch_query = messages.batch_query(request)
    response = query_service_pb2.BatchGetStatesResponse()
    parts = parts_of(batch_query, routing.view)
    result = await split_batch(parts, routing.look_up, wait, clock.now + 60, clock)
    responses.fill_batch_response(response, batch_query, result)
    return response


async def test_each_partition_is_asked_once_and_every_key_answered(routing: FakeRouting, clock: ManualClock) -> None:
    merged = await answer(routing, GROUPS, clock)

    assert sorted(routing.partitions) == [0, 1, 2, 3]
    assert {result.index: result.state.key.group for result in merged.results} == dict(enumerate(GROUPS))
    assert [each.answered_by for each in merged.freshness] == ["query-0", "query-1", "query-2", "query-3"]
    assert all(each.forwarded for each in merged.freshness)


async def test_a_partition_that_nobody_serves_fails_its_own_keys(routing: FakeRouting, clock: ManualClock) -> None:
    routing.lookups[2] = FakeLookup("nobody", NotServedError("still reading"))
    merged = await answer(routing, GROUPS, clock)
    failed = {result.index for result in merged.results if result.HasField("error")}

    assert failed == {index for index, group in enumerate(GROUPS) if partition_of(group, 4) == 2}
    assert len(merged.results) == len(GROUPS)
    assert {result.error.code for result in merged.results if result.HasField("error")} == {14}


async def test_the_first_news_ends_the_waiting_of_the_others(routing: FakeRouting, clock: ManualClock) -> None:
    waiting = {partition: Waiting(f"query-{partition}") for partition in range(4)}
    routing.lookups = dict(waiting)
    polling = asyncio.create_task(answer(routing, GROUPS, clock, wait=30))
    await asyncio.sleep(0.05)
    waiting[1].news.set()
    merged = await asyncio.wait_for(polling, 5)

    assert {partition_of(GROUPS[result.index], 4) for result in merged.results} == {1}
    assert [each.answered_by for each in merged.freshness] == ["query-0", "query-1", "query-2", "query-3"]
    assert [waiting[partition].cancelled for partition in range(4)] == [True, False, True, True]


async def test_news_at_the_first_look_ends_the_poll_at_once(routing: FakeRouting, clock: ManualClock) -> None:
    routing.lookups = {partition: Waiting(f"query-{partition}") for partition in range(4)}
    routing.lookups[3] = FakeLookup("query-3")
    merged = await asyncio.wait_for(answer(routing, GROUPS, clock, wait=30), 5)

    assert {partition_of(GROUPS[result.index], 4) for result in merged.results} == {3}


async def test_no_keys_are_no_calls(routing: FakeRouting, clock: ManualClock) -> None:
    assert await answer(routing, [], clock, wait=1) == query_service_pb2.BatchGetStatesResponse()
    assert routing.partitions == []
