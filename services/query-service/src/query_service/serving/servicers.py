"""The public QueryService, which looks up wherever a key lies, and the internal ShardService, which never forwards."""

# ruff: noqa: N802  the contract names the methods

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from query_service.lookups import Lookup, request_checks
from query_service.lookups.local_lookup import MAX_KEYS_AT_ONCE
from query_service.lookups.request_checks import Limits
from query_service.metrics import Metrics
from query_service.serving import messages, responses
from query_service.serving.call_bytes import FastAnswer
from query_service.serving.call_limits import CallLimits, Context, cap, response_limit, served
from query_service.serving.shard_listing import ShardListing
from query_service.storage.checkpoints import MAX_PIECE_BYTES, Checkpoints, Pace
from statecast.query.v1 import query_service_pb2 as api
from statecast.query.v1.query_service_pb2_grpc import QueryServiceServicer
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceServicer

_Result = TypeVar("_Result")


@dataclass(eq=False)
class QueryServicer(QueryServiceServicer):
    """Checks requests, looks them up, wherever the keys lie, and measures them.

    `fast` has the FastAnswers that answer the usual calls of a method at once, before it is asked.
    """

    lookup: Lookup
    listing: ShardListing
    query_limits: Limits
    metrics: Metrics
    limits: CallLimits
    fast: Mapping[str, FastAnswer] = field(default_factory=dict)

    @served
    async def GetState(self, request: api.GetStateRequest, call: Context) -> api.GetStateResponse:
        with self.metrics.calls.measured("GetState"):
            query = messages.get_query(request)
            request_checks.check_get(query)
            result = await self.lookup.get(query, self.limits.deadline_of(call))
            return responses.fill_get_response(api.GetStateResponse(), query, result)

    @served
    async def BatchGetStates(self, request: api.BatchGetStatesRequest, call: Context) -> api.BatchGetStatesResponse:
        """Answers a batch; parts beyond the largest response fail key by key with RESOURCE_EXHAUSTED."""
        with self.metrics.calls.measured("BatchGetStates"):
            self.limits.in_flight.hold_queries(call, request)
            size = len(request.keys)
            query = await _unblocking(size, lambda: messages.batch_query(request))
            request_checks.check_batch(query, self.query_limits)
            result = await self.lookup.batch(query, self.limits.deadline_of(call, query.max_wait_s))
            response = api.BatchGetStatesResponse()
            await _unblocking(size, lambda: responses.fill_batch_response(response, query, result))
            cap(response, response_limit(request, self.limits.response_bytes))
            self.metrics.batch_keys.inc(len(query.keys) + len(query.ranges))
            self.metrics.batch_results.inc(len(result.keys) + len(result.ranges))
            return response

    @served
    async def ScanStates(self, request: api.ScanStatesRequest, call: Context) -> api.ScanStatesResponse:
        with self.metrics.calls.measured("ScanStates"):
            query = messages.scan_query(request)
            request_checks.check_scan(query)
            result = await self.lookup.scan(query, self.limits.deadline_of(call))
            return responses.fill_scan_response(api.ScanStatesResponse(), result)

    @served
    async def ListVersions(self, request: api.ListVersionsRequest, call: Context) -> api.ListVersionsResponse:
        with self.metrics.calls.measured("ListVersions"):
            query = messages.versions_query(request)
            request_checks.check_versions(query)
            result = await self.lookup.versions(query, self.limits.deadline_of(call))
            return responses.fill_versions_response(api.ListVersionsResponse(), result)

    @served
    async def ListShards(self, request: api.ListShardsRequest, _call: Context) -> api.ListShardsResponse:
        with self.metrics.calls.measured("ListShards"):
            return await self.listing.shards(request.store, request.known_version)


@dataclass(eq=False)
class ShardServicer(ShardServiceServicer):
    """Looks up with `local`, in this instance's own stores alone. Whoever reaches the port may call it."""

    local: Lookup
    listing: ShardListing
    query_limits: Limits
    limits: CallLimits
    checkpoints: Checkpoints
    pace: Pace
    fast: Mapping[str, FastAnswer] = field(default_factory=dict)

    @served
    async def GetState(self, request: shard.GetStateRequest, call: Context) -> shard.GetStateResponse:
        query, response = messages.get_query(request.query), shard.GetStateResponse()
        request_checks.check_get(query)
        responses.fill_get_response(response.answer, query, await self.local.get(query, self.limits.deadline_of(call)))
        return response

    @served
    async def BatchGetStates(self, request: shard.BatchGetStatesRequest, call: Context) -> shard.BatchGetStatesResponse:
        self.limits.in_flight.hold_queries(call, request.query)
        size, response = len(request.query.keys), shard.BatchGetStatesResponse()
        query = await _unblocking(size, lambda: messages.batch_query(request.query))
        request_checks.check_batch(query, self.query_limits)
        result = await self.local.batch(query, self.limits.deadline_of(call))
        await _unblocking(size, lambda: responses.fill_batch_response(response.answer, query, result))
        return response

    @served
    async def ScanStates(self, request: shard.ScanStatesRequest, call: Context) -> shard.ScanStatesResponse:
        query, response = messages.scan_query(request.query), shard.ScanStatesResponse()
        request_checks.check_scan(query)
        partition = request.partition if request.HasField("partition") else None
        result = await self.local.scan(query, self.limits.deadline_of(call), partition)
        responses.fill_scan_response(response.answer, result)
        return response

    @served
    async def ListVersions(self, request: shard.ListVersionsRequest, call: Context) -> shard.ListVersionsResponse:
        query, response = messages.versions_query(request.query), shard.ListVersionsResponse()
        request_checks.check_versions(query)
        result = await self.local.versions(query, self.limits.deadline_of(call))
        responses.fill_versions_response(response.answer, result)
        return response

    @served
    async def ListPartitions(self, _: shard.ListPartitionsRequest, _call: Context) -> shard.ListPartitionsResponse:
        return self.listing.own_partitions()

    @served
    async def CreateCheckpoint(
        self, request: shard.CreateCheckpointRequest, _call: Context
    ) -> shard.CreateCheckpointResponse:
        replica = self.listing.view.replica(request.store, request.partition)
        checkpoint = await asyncio.to_thread(self.checkpoints.create, replica)
        return shard.CreateCheckpointResponse(
            checkpoint_id=checkpoint.checkpoint_id,
            next_offset=checkpoint.next_offset,
            files=[shard.CheckpointFile(name=name, size=size) for name, size in checkpoint.files.items()],
            **checkpoint.origin._asdict(),
        )

    @served
    async def ReadCheckpoint(
        self, request: shard.ReadCheckpointRequest, _call: Context
    ) -> shard.ReadCheckpointResponse:
        length = min(request.length, MAX_PIECE_BYTES)
        await asyncio.sleep(self.pace.delay_s(length))
        piece = await asyncio.to_thread(
            self.checkpoints.read, request.checkpoint_id, request.file, request.offset, length
        )
        return shard.ReadCheckpointResponse(data=piece.data, crc32=piece.crc32)

    @served
    async def DeleteCheckpoint(
        self, request: shard.DeleteCheckpointRequest, _call: Context
    ) -> shard.DeleteCheckpointResponse:
        await asyncio.to_thread(self.checkpoints.delete, request.checkpoint_id)
        return shard.DeleteCheckpointResponse()


async def _unblocking(size: int, call: Callable[[], _Result]) -> _Result:
    """Calls a function on a batch of so many keys: in a thread when it would hold the event loop for long."""
    return call() if size <= MAX_KEYS_AT_ONCE else await asyncio.to_thread(call)
