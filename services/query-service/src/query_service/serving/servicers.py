"""The public QueryService, which looks up wherever a key lies, and the internal ShardService, which never forwards."""

# ruff: noqa: N802  the contract names the methods

from query_service.lookups import Lookup, request_checks
from query_service.lookups.request_checks import Limits
from query_service.metrics import Metrics
from query_service.serving import messages, responses
from query_service.serving.call_limits import CallLimits, Context, cap, deadline_of, served
from query_service.serving.shard_listing import ShardListing
from statecast.query.v1 import query_service_pb2 as query_pb2
from statecast.query.v1.query_service_pb2_grpc import QueryServiceServicer
from statecast.shard.v1 import shard_service_pb2 as shard_pb2
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceServicer


class QueryServicer(QueryServiceServicer):
    """Checks requests, looks them up and measures them; an error that is raised ends the call with its status."""

    def __init__(
        self, lookup: Lookup, listing: ShardListing, query_limits: Limits, metrics: Metrics, limits: CallLimits
    ) -> None:
        """Looks up with `lookup`, which may forward."""
        self.limits = limits
        self._lookup = lookup
        self._listing = listing
        self._query_limits = query_limits
        self._metrics = metrics

    @served
    async def GetState(self, request: query_pb2.GetStateRequest, context: Context) -> query_pb2.GetStateResponse:
        with self._metrics.measured("GetState"):
            query = messages.get_query(request)
            request_checks.check_get(query)
            result = await self._lookup.get(query, self._deadline(context))
            response = query_pb2.GetStateResponse()
            responses.fill_get_response(response, query, result)
            return response

    @served
    async def BatchGetStates(
        self, request: query_pb2.BatchGetStatesRequest, context: Context
    ) -> query_pb2.BatchGetStatesResponse:
        """What does not fit into the largest response fails key by key with RESOURCE_EXHAUSTED."""
        with self._metrics.measured("BatchGetStates"):
            query = messages.batch_query(request)
            request_checks.check_batch(query, self._query_limits)
            result = await self._lookup.batch(query, self._deadline(context, query.max_wait_s))
            response = query_pb2.BatchGetStatesResponse()
            responses.fill_batch_response(response, query, result)
            cap(response, self.limits.response_bytes)
            self._metrics.batch_keys.inc(len(query.keys) + len(query.ranges))
            self._metrics.batch_results.inc(len(result.keys) + len(result.ranges))
            return response

    @served
    async def ScanStates(self, request: query_pb2.ScanStatesRequest, context: Context) -> query_pb2.ScanStatesResponse:
        with self._metrics.measured("ScanStates"):
            query = messages.scan_query(request)
            request_checks.check_scan(query)
            response = query_pb2.ScanStatesResponse()
            responses.fill_scan_response(response, await self._lookup.scan(query, self._deadline(context)))
            return response

    @served
    async def ListVersions(
        self, request: query_pb2.ListVersionsRequest, context: Context
    ) -> query_pb2.ListVersionsResponse:
        with self._metrics.measured("ListVersions"):
            query = messages.versions_query(request)
            request_checks.check_versions(query)
            response = query_pb2.ListVersionsResponse()
            responses.fill_versions_response(response, await self._lookup.versions(query, self._deadline(context)))
            return response

    @served
    async def ListShards(self, request: query_pb2.ListShardsRequest, _context: Context) -> query_pb2.ListShardsResponse:
        """The peers get the time of one answer, whatever the deadline of the call is."""
        with self._metrics.measured("ListShards"):
            return await self._listing.shards(request.store)

    def _deadline(self, context: Context, wait_s: float = 0.0) -> float:
        limits = self.limits
        return deadline_of(context, limits.monotonic(), limits.timeout_s + wait_s, limits.max_s + wait_s)


class ShardServicer(ShardServiceServicer):
    """Looks up in this instance's own stores; the peers have checked the requests."""

    def __init__(self, local: Lookup, listing: ShardListing, limits: CallLimits) -> None:
        """Looks up with `local`, which must not forward."""
        self.limits = limits
        self._local = local
        self._listing = listing

    @served
    async def GetState(self, request: shard_pb2.GetStateRequest, context: Context) -> shard_pb2.GetStateResponse:
        query = messages.get_query(request.query)
        response = shard_pb2.GetStateResponse()
        responses.fill_get_response(response.answer, query, await self._local.get(query, self._deadline(context)))
        return response

    @served
    async def BatchGetStates(
        self, request: shard_pb2.BatchGetStatesRequest, context: Context
    ) -> shard_pb2.BatchGetStatesResponse:
        query = messages.batch_query(request.query)
        response = shard_pb2.BatchGetStatesResponse()
        responses.fill_batch_response(response.answer, query, await self._local.batch(query, self._deadline(context)))
        return response

    @served
    async def ScanStates(self, request: shard_pb2.ScanStatesRequest, context: Context) -> shard_pb2.ScanStatesResponse:
        query = messages.scan_query(request.query)
        partition = request.partition if request.HasField("partition") else None
        response = shard_pb2.ScanStatesResponse()
        result = await self._local.scan(query, self._deadline(context), partition)
        responses.fill_scan_response(response.answer, result)
        return response

    @served
    async def ListVersions(
        self, request: shard_pb2.ListVersionsRequest, context: Context
    ) -> shard_pb2.ListVersionsResponse:
        query = messages.versions_query(request.query)
        response = shard_pb2.ListVersionsResponse()
        responses.fill_versions_response(response.answer, await self._local.versions(query, self._deadline(context)))
        return response

    @served
    async def ListPartitions(
        self, _request: shard_pb2.ListPartitionsRequest, _context: Context
    ) -> shard_pb2.ListPartitionsResponse:
        return self._listing.own_partitions()

    def _deadline(self, context: Context) -> float:
        return deadline_of(context, self.limits.monotonic(), self.limits.timeout_s)
