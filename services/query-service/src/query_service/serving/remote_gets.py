"""Lookups of single keys at a peer: those that are in flight together are one call."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from query_service.errors import AbsentError, InvalidRequestError, LookupFailedError, TimedOutError
from query_service.lookups import Encoded, GetQuery, GetResult
from query_service.serving.grpc_status import failure_of_key
from query_service.serving.messages import absence_of, forwarded_freshness, message_of
from query_service.storage.progress import Freshness
from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast_client.coalescing import Coalescer

_MAX_BATCH = 128  # the answers of a call wait for each other

_Response = TypeVar("_Response")


class Call(Protocol):
    """Makes a call of the peer that ends by a deadline. Raises LookupFailedError."""

    async def __call__(
        self, method: Callable[..., Awaitable[_Response]], request: Message, deadline: float
    ) -> _Response: ...


_Group = tuple[str, int]
"""A store, and the power of two of the seconds that are left: who has little time shortens the call for few others."""

_Get = tuple[GetQuery, float]
"""A lookup and its deadline."""


@dataclass(eq=False)
class RemoteGets:
    """Each caller has its own deadline and its own error, as if it had asked alone.

    What may have to wait, because it has bounds, and what a batch cannot ask for is asked for alone.
    """

    stub: "shard_grpc.ShardServiceAsyncStub"
    peer: str
    monotonic: Callable[[], float]
    call: Call
    _coalescer: Coalescer[_Group, _Get, GetResult] = field(init=False)

    def __post_init__(self) -> None:
        self._coalescer = Coalescer(self._alone, self._together, max_batch=_MAX_BATCH)

    def result(self, query: GetQuery, deadline: float) -> Awaitable[GetResult]:
        """Returns the value of one key. Raises LookupFailedError."""
        group = query.store, math.frexp(deadline - self.monotonic())[1]
        if query.bounds is not None or query.as_of is not None:
            return self._alone(group, (query, deadline))
        return self._coalescer.result(group, (query, deadline))

    async def _alone(self, _: _Group, get: _Get) -> GetResult:
        query, deadline = get
        request = shard.GetStateRequest(query=message_of(query.encoded))
        answer = (await self.call(self.stub.GetState, request, deadline)).answer
        return GetResult(Encoded(answer.state), forwarded_freshness(answer.freshness))

    async def _together(self, group: _Group, gets: Sequence[_Get]) -> Sequence[GetResult | Exception | None]:
        request = shard.BatchGetStatesRequest()
        request.query.store = group[0]
        for query, _ in gets:
            key = request.query.keys.add().key
            key.group, key.sort, key.member = query.key
        try:
            response = await self.call(self.stub.BatchGetStates, request, min(deadline for _, deadline in gets))
        except LookupFailedError as failure:
            if _is_of_the_batch(failure):
                return [None] * len(gets)
            if isinstance(failure, TimedOutError):  # those who have time left wait for it alone
                now = self.monotonic()
                return [None if deadline > now else TimedOutError(str(failure)) for _, deadline in gets]
            raise
        return results([query for query, _ in gets], response.answer, self.peer)


def _is_of_the_batch(failure: LookupFailedError) -> bool:
    """Whether it says something of all the keys together, or of another key than that of the caller."""
    cause = failure.__cause__
    is_too_much = isinstance(cause, grpc.aio.AioRpcError) and cause.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return is_too_much or isinstance(failure, InvalidRequestError)


def results(
    queries: Sequence[GetQuery], answer: query_service_pb2.BatchGetStatesResponse, peer: str
) -> Sequence[GetResult | Exception | None]:
    """Returns what each query would have had alone; None when that can only be known by asking alone."""
    ordered: list[GetResult | Exception | None] = [None] * len(queries)
    known: list[Freshness | None] = [None] * len(queries)
    for message in answer.freshness:
        freshness = forwarded_freshness(message)._replace(keys=(), ranges=())
        for index in message.keys:
            known[index] = freshness
    for result in answer.results:
        index = result.index
        if result.HasField("error"):
            ordered[index] = failure_of_key(result.error, peer)
        elif (its_freshness := known[index]) is not None:
            ordered[index] = _result(queries[index], result, its_freshness)
    return ordered


def _result(query: GetQuery, result: query_pb2.KeyResult, freshness: Freshness) -> GetResult | AbsentError:
    if result.HasField("state"):
        return GetResult(Encoded(result.state), freshness)
    absence = absence_of(result.absence)._replace(purged_offset=None)  # which a batch says, and a get does not
    return AbsentError.of(query.store, query.key.group, absence, freshness)
