"""Batches over several partitions."""

import asyncio

import pytest
from typing_extensions import override

from query_service.cluster.view import View
from query_service.errors import LookupFailedError, NotServedError
from query_service.reads.batch import Part, Pieces, look, part_request, split
from query_service.reads.request_checks import Room
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse
from statecast.state.v1 import state_pb2
from testkit.query_service import FakeReads

GROUPS = [f"order-{number}" for number in range(20)]


class FakeRouting:
    """Asks one lookup per partition, and counts the calls."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lookups: dict[int, FakeReads] = {
            partition: FakeReads(f"query-{partition}", forwarded=True) for partition in range(4)
        }
        self.partitions: list[int] = []

    async def answer(self, request: BatchGetStatesRequest, wait_s: float) -> BatchGetStatesResponse:
        pieces = Pieces(Room(1 << 20))

        async def look_up(part: Part, wait_s: float) -> Pieces:
            self.partitions.append(part.partition)
            answered = Pieces(pieces.room)
            try:
                answer = await self.lookups[part.partition].batch(part_request(request, [part], wait_s), 0.0)
            except NotServedError as failure:
                answered.fail(part, failure)
            else:
                answer.freshness[0].partition = part.partition
                answered.join(answer, [part])
            return answered

        parts = split(request, self.view, pieces)
        await look(parts, look_up, wait_s, lambda: 60.0, pieces)
        return BatchGetStatesResponse.FromString(pieces.encoded())


class Waiting(FakeReads):
    """Has no new values until the test sets `news`."""

    def __init__(self, answered_by: str, failure: LookupFailedError | None = None) -> None:
        super().__init__(answered_by, failure, forwarded=True)
        self.news = asyncio.Event()
        self.asked = asyncio.Event()
        self.cancelled = False

    @override
    async def batch(self, request: BatchGetStatesRequest, deadline: float) -> BatchGetStatesResponse:
        if not request.HasField("max_wait") and not self.news.is_set():
            return BatchGetStatesResponse(freshness=[query_pb2.Freshness(answered_by=self.answered_by)])
        self.asked.set()
        try:
            await self.news.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().batch(request, deadline)


@pytest.fixture
def routing(view: View) -> FakeRouting:
    return FakeRouting(view)


async def answer(routing: FakeRouting, groups: list[str], wait: int = 0) -> BatchGetStatesResponse:
    keys = [query_pb2.KeyQuery(key=state_pb2.StateKey(group=group)) for group in groups]
    return await routing.answer(BatchGetStatesRequest(store="orders-by-key", keys=keys), wait)


async def test_each_partition_is_asked_once_and_every_key_answered(routing: FakeRouting) -> None:
    merged = await answer(routing, GROUPS)

    assert sorted(routing.partitions) == [0, 1, 2, 3]
    assert {result.index: result.state.key.group for result in merged.results} == dict(enumerate(GROUPS))
    assert [each.answered_by for each in merged.freshness] == ["query-0", "query-1", "query-2", "query-3"]
    assert all(each.forwarded for each in merged.freshness)


async def test_a_partition_that_nobody_serves_fails_its_own_keys(routing: FakeRouting) -> None:
    routing.lookups[2] = FakeReads("nobody", NotServedError("still reading"))
    merged = await answer(routing, GROUPS)
    failed = {result.index for result in merged.results if result.HasField("error")}

    assert failed == {index for index, group in enumerate(GROUPS) if partition_of(group, 4) == 2}
    assert len(merged.results) == len(GROUPS)
    assert {result.error.code for result in merged.results if result.HasField("error")} == {14}


async def test_the_first_news_ends_the_waiting_of_the_others(routing: FakeRouting) -> None:
    waiting = {partition: Waiting(f"query-{partition}") for partition in range(4)}
    routing.lookups = {**waiting}
    polling = asyncio.create_task(answer(routing, GROUPS, wait=30))
    await asyncio.gather(*(each.asked.wait() for each in waiting.values()))
    waiting[1].news.set()
    merged = await asyncio.wait_for(polling, 5)

    assert {partition_of(GROUPS[result.index], 4) for result in merged.results} == {1}
    assert [each.answered_by for each in merged.freshness] == ["query-0", "query-1", "query-2", "query-3"]
    assert [waiting[partition].cancelled for partition in range(4)] == [True, False, True, True]


async def test_news_at_the_first_look_ends_the_poll_at_once(routing: FakeRouting) -> None:
    routing.lookups = {partition: Waiting(f"query-{partition}") for partition in range(4)}
    routing.lookups[3] = FakeReads("query-3")
    merged = await asyncio.wait_for(answer(routing, GROUPS, wait=30), 5)

    assert {partition_of(GROUPS[result.index], 4) for result in merged.results} == {3}


async def test_no_keys_are_no_calls(routing: FakeRouting) -> None:
    assert await answer(routing, [], wait=1) == BatchGetStatesResponse()
    assert routing.partitions == []
