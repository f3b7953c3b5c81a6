"""What is asked of a peer together, and what alone."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message

from query_service.errors import BoundsError, LookupFailedError, NotServedError, TimedOutError
from query_service.lookups import Bounds, GetQuery, GetResult, Key
from query_service.serving import messages
from query_service.serving.grpc_status import failure_of
from query_service.serving.remote_gets import RemoteGets
from statecast.query.v1 import query_service_pb2
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.state.v1 import state_pb2
from testkit.query_service import ManualClock


class Peer:
    """Answers each key with its group; `errors` has the status of a group in a batch, and `failure` fails batches."""

    GetState = "GetState"
    BatchGetStates = "BatchGetStates"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.calls: list[tuple[str, list[str], float]] = []
        self.errors: dict[str, grpc.StatusCode] = {}
        self.failure: grpc.StatusCode | None = None
        self.on_batch: Callable[[], None] = lambda: None
        self.gets = RemoteGets(self, "query-2", clock, self.call)  # type: ignore[arg-type]

    async def call(self, method: Callable[..., Awaitable[Any]], request: Message, deadline: float) -> Any:
        if isinstance(request, shard.GetStateRequest):
            self.calls.append((str(method), [request.query.key.group], deadline))
            single = shard.GetStateResponse()
            single.answer.state.key.CopyFrom(request.query.key)
            return single
        assert isinstance(request, shard.BatchGetStatesRequest)
        groups = [each.key.group for each in request.query.keys]
        self.calls.append((str(method), groups, deadline))
        self.on_batch()
        if self.failure is not None:
            error = grpc.aio.AioRpcError(self.failure, grpc.aio.Metadata(), grpc.aio.Metadata(), "all of it")
            raise failure_of(error, "query-2") from error
        response = shard.BatchGetStatesResponse()
        response.answer.freshness.add(keys=range(len(groups)), partition=3)
        for index, group in enumerate(groups):
            result = response.answer.results.add(index=index)
            if group in self.errors:
                result.error.code, result.error.message = self.errors[group].value[0], f"{group} fails"
            else:
                result.state.key.group = group
        return response

    async def ask(self, group: str, left_s: float = 10.0, **fields: Any) -> str:
        message = query_service_pb2.GetStateRequest(store="s", key=state_pb2.StateKey(group=group))
        query = GetQuery("s", Key(group), encoded=messages.get_query(message).encoded, **fields)
        result: GetResult = await self.gets.result(query, self.gets.monotonic() + left_s)
        return str(messages.message_of(result.value).key.group)  # type: ignore[arg-type]

    async def asked(self, *groups: str) -> list[str | BaseException]:
        return await asyncio.gather(*map(self.ask, groups), return_exceptions=True)

    @property
    def asked_for(self) -> list[tuple[str, int]]:
        """Each call with the number of its keys."""
        return [(method, len(groups)) for method, groups, _ in self.calls]


async def test_those_in_flight_together_are_one_call_and_a_lone_one_is_a_get() -> None:
    peer = Peer()

    assert await peer.asked("a", "b", "c") == ["a", "b", "c"]
    assert await peer.ask("d") == "d"
    assert peer.asked_for == [("BatchGetStates", 3), ("GetState", 1)]


@pytest.mark.parametrize("fields", [{"bounds": Bounds(max_lag_ms=5)}, {"as_of": (1, 0)}])
async def test_what_may_wait_or_asks_for_an_older_version_goes_alone(fields: dict[str, Any]) -> None:
    peer = Peer()
    await asyncio.gather(peer.ask("a", **fields), peer.ask("b", **fields), peer.ask("c"))

    assert sorted(peer.asked_for) == [("GetState", 1)] * 3


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (grpc.StatusCode.UNAVAILABLE, NotServedError),
        (grpc.StatusCode.NOT_FOUND, NotServedError),
        (grpc.StatusCode.FAILED_PRECONDITION, BoundsError),
    ],
)
async def test_each_caller_has_its_own_failure(code: grpc.StatusCode, failure: type[LookupFailedError]) -> None:
    peer = Peer()
    peer.errors["b"] = code
    one, other, third = await peer.asked("a", "b", "c")

    assert (one, third) == ("a", "c")
    assert isinstance(other, failure)


async def test_what_is_too_large_for_a_batch_is_asked_for_alone() -> None:
    peer = Peer()
    peer.errors["b"] = grpc.StatusCode.RESOURCE_EXHAUSTED

    assert await peer.asked("a", "b") == ["a", "b"]
    assert peer.asked_for == [("BatchGetStates", 2), ("GetState", 1)]


@pytest.mark.parametrize("code", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED])
async def test_a_refusal_of_all_together_is_asked_for_one_by_one(code: grpc.StatusCode) -> None:
    peer = Peer()
    peer.failure = code

    assert await peer.asked("a", "b") == ["a", "b"]


async def test_a_peer_that_does_not_serve_any_of_them_tells_each_caller_so() -> None:
    peer = Peer()
    peer.failure = grpc.StatusCode.NOT_FOUND
    failures = await peer.asked("a", "b")

    assert [type(failure) for failure in failures] == [NotServedError] * 2
    assert failures[0] is not failures[1]


async def test_who_has_time_left_when_the_call_ends_goes_on_alone() -> None:
    clock = ManualClock()
    peer = Peer(clock)
    peer.failure = grpc.StatusCode.DEADLINE_EXCEEDED

    def wait() -> None:
        clock.now += 9

    peer.on_batch = wait
    hasty, patient = await asyncio.gather(peer.ask("a", 8.5), peer.ask("b", 10), return_exceptions=True)

    assert isinstance(hasty, TimedOutError)
    assert patient == "b"
    assert [deadline for _, _, deadline in peer.calls] == [1008.5, 1010]


async def test_who_has_little_time_shortens_the_call_of_no_other() -> None:
    peer = Peer(ManualClock())
    await asyncio.gather(peer.ask("a", 0.01), peer.ask("b", 0.01), peer.ask("c", 10), peer.ask("d", 10))

    assert [(len(groups), deadline) for _, groups, deadline in peer.calls] == [(2, 1000.01), (2, 1010)]
