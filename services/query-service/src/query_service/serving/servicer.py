"""The public QueryService: checks a request, looks it up wherever it lies, and measures it."""

# ruff: noqa: N802  the contract names the methods

from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

from query_service.grpc_status import with_status
from query_service.lookups import request_checks
from query_service.lookups.lookup import Lookup
from query_service.lookups.request_checks import Limits
from query_service.metrics import Metrics
from query_service.serving.answer_size import cap
from query_service.serving.deadlines import deadline_of
from query_service.serving.in_flight import InFlight, within_memory
from query_service.serving.shard_listing import ShardListing
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class QueryServicer(query_grpc.QueryServiceServicer):
    """Every method ends with the status that `grpc_status` gives to the error that it raises."""

    def __init__(
        self,
        lookup: Lookup,
        listing: ShardListing,
        limits: Limits,
        metrics: Metrics,
        *,
        in_flight: InFlight,
        call_timeout_s: float,
        call_limit_s: float,
        answer_bytes: int,
        monotonic: Callable[[], float],
    ) -> None:
        """Looks up with `lookup`; a call without a deadline gets `call_timeout_s`, none more than `call_limit_s`."""
        self.in_flight = in_flight
        self._lookup = lookup
        self._listing = listing
        self._limits = limits
        self._metrics = metrics
        self._call_timeout_s = call_timeout_s
        self._call_limit_s = call_limit_s
        self._answer_bytes = answer_bytes
        self._monotonic = monotonic

    @with_status
    @within_memory
    async def GetState(self, request: query.GetStateRequest, context: _Context) -> query.GetStateResponse:
        """See the contract."""
        with self._metrics.measured("GetState"):
            request_checks.check_get(request)
            return await self._lookup.get(request, self._deadline(context))

    @with_status
    @within_memory
    async def BatchGetStates(
        self, request: query.BatchGetStatesRequest, context: _Context
    ) -> query.BatchGetStatesResponse:
        """See the contract. What does not fit into the largest answer fails key by key with RESOURCE_EXHAUSTED."""
        with self._metrics.measured("BatchGetStates"):
            request_checks.check_batch(request, self._limits)
            deadline = self._deadline(context, request_checks.wait_s(request))
            answer = await self._lookup.batch(request, deadline)
            cap(answer, self._answer_bytes)
            self._metrics.batch_keys.inc(len(request.keys) + len(request.ranges))
            self._metrics.batch_results.inc(len(answer.results) + len(answer.ranges))
            return answer

    @with_status
    @within_memory
    async def ScanStates(self, request: query.ScanStatesRequest, context: _Context) -> query.ScanStatesResponse:
        """See the contract."""
        with self._metrics.measured("ScanStates"):
            request_checks.check_scan(request)
            return await self._lookup.scan(request, self._deadline(context))

    @with_status
    @within_memory
    async def ListVersions(self, request: query.ListVersionsRequest, context: _Context) -> query.ListVersionsResponse:
        """See the contract."""
        with self._metrics.measured("ListVersions"):
            request_checks.check_versions(request)
            return await self._lookup.versions(request, self._deadline(context))

    @with_status
    @within_memory
    async def ListShards(
        self,
        request: query.ListShardsRequest,
        context: _Context,  # noqa: ARG002  the peers get the time of one answer
    ) -> query.ListShardsResponse:
        """See the contract."""
        with self._metrics.measured("ListShards"):
            return await self._listing.shards(request.store)

    def _deadline(self, context: _Context, wait_s: float = 0.0) -> float:
        now = self._monotonic()
        return deadline_of(context, now, self._call_timeout_s + wait_s, self._call_limit_s + wait_s)
