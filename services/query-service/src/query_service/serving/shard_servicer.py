"""The internal ShardService: looks up in this instance's own stores, and never passes a call on."""

# ruff: noqa: N802  the contract names the methods

from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

from query_service.grpc_status import with_status
from query_service.lookups.lookup import Lookup
from query_service.serving.deadlines import deadline_of
from query_service.serving.in_flight import InFlight, within_memory
from query_service.serving.shard_listing import ShardListing
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class ShardServicer(shard_grpc.ShardServiceServicer):
    """Peers have checked the requests; every method ends with the status of the error that it raises."""

    def __init__(
        self,
        local: Lookup,
        listing: ShardListing,
        in_flight: InFlight,
        call_timeout_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        """Looks up with `local`, which must not forward."""
        self.in_flight = in_flight
        self._local = local
        self._listing = listing
        self._call_timeout_s = call_timeout_s
        self._monotonic = monotonic

    @with_status
    @within_memory
    async def GetState(self, request: shard.GetStateRequest, context: _Context) -> shard.GetStateResponse:
        """See the contract."""
        return shard.GetStateResponse(answer=await self._local.get(request.query, self._deadline(context)))

    @with_status
    @within_memory
    async def BatchGetStates(
        self, request: shard.BatchGetStatesRequest, context: _Context
    ) -> shard.BatchGetStatesResponse:
        """See the contract."""
        return shard.BatchGetStatesResponse(answer=await self._local.batch(request.query, self._deadline(context)))

    @with_status
    @within_memory
    async def ScanStates(self, request: shard.ScanStatesRequest, context: _Context) -> shard.ScanStatesResponse:
        """See the contract."""
        partition = request.partition if request.HasField("partition") else None
        answer = await self._local.scan(request.query, self._deadline(context), partition)
        return shard.ScanStatesResponse(answer=answer)

    @with_status
    @within_memory
    async def ListVersions(self, request: shard.ListVersionsRequest, context: _Context) -> shard.ListVersionsResponse:
        """See the contract."""
        return shard.ListVersionsResponse(answer=await self._local.versions(request.query, self._deadline(context)))

    @with_status
    @within_memory
    async def ListPartitions(
        self,
        request: shard.ListPartitionsRequest,  # noqa: ARG002  it has no fields
        context: _Context,  # noqa: ARG002  nothing is waited for
    ) -> shard.ListPartitionsResponse:
        """See the contract."""
        return self._listing.own_partitions()

    def _deadline(self, context: _Context) -> float:
        return deadline_of(context, self._monotonic(), self._call_timeout_s)
