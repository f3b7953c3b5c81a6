"""Lookups at one peer, on the internal service."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc

from query_service.errors import UnreachableError
from query_service.grpc_status import failure_of
from statecast.query.v1 import query_service_pb2 as query
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc

_Answer = TypeVar("_Answer")


class RemoteLookup:
    """A Lookup that the peer answers from its own stores. What is left of the deadline is passed on."""

    def __init__(self, stub: "shard_grpc.ShardServiceAsyncStub", peer: str, monotonic: Callable[[], float]) -> None:
        """Asks the peer behind the stub."""
        self._stub = stub
        self._peer = peer
        self._monotonic = monotonic

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        call = self._stub.GetState(shard.GetStateRequest(query=request), timeout=self._left(deadline))
        return (await self._answer(call)).answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        call = self._stub.BatchGetStates(shard.BatchGetStatesRequest(query=request), timeout=self._left(deadline))
        return (await self._answer(call)).answer

    async def scan(
        self, request: query.ScanStatesRequest, deadline: float, partition: int | None = None
    ) -> query.ScanStatesResponse:
        """See Lookup."""
        asked = shard.ScanStatesRequest(query=request, partition=partition)
        call = self._stub.ScanStates(asked, timeout=self._left(deadline))
        return (await self._answer(call)).answer

    async def versions(self, request: query.ListVersionsRequest, deadline: float) -> query.ListVersionsResponse:
        """See Lookup."""
        call = self._stub.ListVersions(shard.ListVersionsRequest(query=request), timeout=self._left(deadline))
        return (await self._answer(call)).answer

    def _left(self, deadline: float) -> float:
        left = deadline - self._monotonic()
        if left <= 0:
            raise UnreachableError(f"{self._peer} was not asked: the deadline has passed")
        return left

    async def _answer(self, call: Awaitable[_Answer]) -> _Answer:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise failure_of(error, self._peer) from error
