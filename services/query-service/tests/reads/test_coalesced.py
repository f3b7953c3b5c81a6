"""Gets that are passed on in flight together are one batch."""

import asyncio
from collections.abc import Sequence

from query_service.cluster.shard_map import Member, StorePartition
from query_service.errors import AbsentError, InvalidRequestError, NotServedError, UnreachableError
from query_service.reads.coalesced import CoalescedGets, Get
from query_service.reads.route import Route
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2

PLACE = ("s", 0)
ROUTES = {name: Route(Member(name, "h:1", "s:1"), None) for name in ("first", "other")}


class Upstream:
    """Answers batches once the gate is open. A group `alone` fails in them, and `absent` has no value."""

    def __init__(self, max_keys: int = 128) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.batches: list[tuple[str, str]] = []
        self.failure: Exception | None = None
        self.alone: list[str] = []
        self.of_partition: list[str] = []
        self.gets = CoalescedGets(self._together, self._of_partition, self._alone, lambda _: None, max_keys)

    def ask(
        self, *groups: str, route: str = "first", left_s: float = 5.0, place: StorePartition = PLACE
    ) -> "list[asyncio.Future[bytes]]":
        requests = [api.GetStateRequest(store="s", key=state_pb2.StateKey(group=group)) for group in groups]
        return [self.gets.get(ROUTES[route], place, request, 1e9, left_s) for request in requests]

    async def _together(self, route: Route, gets: Sequence[Get]) -> api.BatchGetStatesResponse:
        groups = [get.request.key.group for get in gets]
        self.batches.append((route.first.instance, "".join(groups)))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        response = api.BatchGetStatesResponse(freshness=[query_pb2.Freshness(keys=range(len(gets)), lag_ms=3)])
        for index, group in enumerate(groups):
            result = response.results.add(index=index)
            if group == "alone":
                result.error.code = 14
            elif group == "absent":
                result.absence.deleted = True
            else:
                result.state.payload = f"{group} together".encode()
        return response

    async def _of_partition(self, gets: Sequence[Get]) -> api.BatchGetStatesResponse:
        groups = [get.request.key.group for get in gets]
        self.of_partition.append("".join(groups))
        if "z" in groups:
            raise UnreachableError("nobody answers")
        if "wrong" in groups:
            raise InvalidRequestError("keys[1]: it is wrong")
        response = api.BatchGetStatesResponse(freshness=[query_pb2.Freshness(keys=range(len(gets)))])
        for index, group in enumerate(groups):
            response.results.add(index=index).state.payload = f"{group} by partition".encode()
        return response

    async def _alone(self, request: api.GetStateRequest, _deadline: float) -> bytes:
        self.alone.append(request.key.group)
        await self.gate.wait()
        state = query_pb2.State(payload=f"{request.key.group} alone".encode())
        return api.GetStateResponse(state=state).SerializeToString()


async def payloads(futures: "list[asyncio.Future[bytes]]") -> list[str]:
    return [api.GetStateResponse.FromString(each).state.payload.decode() for each in await asyncio.gather(*futures)]


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_those_of_one_turn_and_route_are_one_batch_and_a_lone_one_is_its_own() -> None:
    upstream = Upstream()
    answers = await payloads([*upstream.ask("a", "b"), *upstream.ask("c", route="other"), *upstream.ask("d")])
    answers += await payloads(upstream.ask("e"))

    assert answers == [f"{group} together" for group in "abcde"]
    assert sorted(upstream.batches) == [("first", "abd"), ("first", "e"), ("other", "c")]


async def test_those_with_little_time_share_no_batch_with_others() -> None:
    upstream = Upstream()
    await payloads([*upstream.ask("a", "b"), *upstream.ask("c", left_s=0.01)])

    assert sorted(upstream.batches) == [("first", "ab"), ("first", "c")]


async def test_no_batch_is_larger_than_the_limit() -> None:
    upstream = Upstream(max_keys=2)

    assert await payloads(upstream.ask(*"abcde")) == [f"{group} together" for group in "abcde"]
    assert [groups for _, groups in upstream.batches] == ["ab", "cd", "e"]


async def test_each_has_its_own_error_and_goes_alone_where_a_batch_cannot_do() -> None:
    upstream = Upstream()
    ended = await asyncio.gather(*upstream.ask("a", "absent", "alone"), return_exceptions=True)
    absent = ended[1]

    assert isinstance(absent, AbsentError)
    assert (absent.absence.deleted, absent.freshness.lag_ms) == (True, 3)
    assert upstream.alone == ["alone"]
    assert isinstance(ended[2], bytes)
    assert api.GetStateResponse.FromString(ended[2]).state.payload == b"alone alone"


async def test_a_batch_that_fails_is_asked_for_by_partition() -> None:
    upstream = Upstream()
    upstream.failure = NotServedError("of all keys together")
    futures = [*upstream.ask("a", "b"), *upstream.ask("c", place=("s", 1)), *upstream.ask("d", place=("s", 0))]

    assert await payloads(futures) == ["a by partition", "b by partition", "c alone", "d by partition"]
    assert (upstream.of_partition, upstream.alone) == (["abd"], ["c"])


async def test_a_get_that_is_wrong_fails_no_other() -> None:
    upstream = Upstream()
    upstream.failure = InvalidRequestError("of all keys together")

    assert await payloads(upstream.ask("a", "wrong")) == ["a alone", "wrong alone"]


async def test_a_partition_that_nobody_answers_fails_each_get_and_asks_for_none_alone() -> None:
    upstream = Upstream()
    upstream.failure = NotServedError("of all keys together")
    ended = await asyncio.gather(*upstream.ask("y", "z"), return_exceptions=True)

    assert [type(each) for each in ended] == [UnreachableError] * 2
    assert ended[0] is not ended[1]
    assert upstream.alone == []


async def test_a_caller_that_goes_away_while_it_is_asked_for_alone_ends_that() -> None:
    upstream = Upstream()
    upstream.failure = NotServedError("of all keys together")
    [future] = upstream.ask("a")
    await turns(3)
    upstream.gate.clear()
    future.cancel()
    await turns()

    assert asyncio.all_tasks() == {asyncio.current_task()}
