"""Lookups at whichever replica answers: the owner first, the next on failure."""

from collections.abc import Callable

from query_service.cluster.peer_memory import Shard
from query_service.cluster.view import View
from query_service.lookups import page_token
from query_service.lookups.local_versions import check_history
from query_service.lookups.lookup import Lookup
from query_service.lookups.request_checks import Limits, page_size
from query_service.lookups.routed_batch import RoutedBatch
from query_service.lookups.routing import Routing
from query_service.lookups.store_scan import page_of_store
from statecast.query.v1 import query_service_pb2 as query


class RoutedLookup:
    """A Lookup over all partitions of all stores. Raises UnknownStoreError for a store that there is not."""

    def __init__(
        self, view: View, local: Lookup, routing: Routing, limits: Limits, monotonic: Callable[[], float]
    ) -> None:
        """Routes by the view's topics; `local` answers what is asked of this instance alone."""
        self._view = view
        self._local = local
        self._limits = limits
        self._routing = routing
        self._monotonic = monotonic

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        if request.HasField("as_of"):
            check_history(self._view.store(request.store))
        shard = self._shard(request.store, request.key.group)
        answer, forwarded = await self._routing.first_answer(
            shard, lambda lookup, until: lookup.get(request, until), deadline, kind="get"
        )
        answer.freshness.forwarded = forwarded
        return answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        partitions = self._view.topic(request.store).partitions
        hash_of = self._view.hash_of(request.store)
        return await RoutedBatch(self._routing, request, partitions, deadline, self._monotonic, hash_of).answer()

    async def scan(
        self, request: query.ScanStatesRequest, deadline: float, partition: int | None = None
    ) -> query.ScanStatesResponse:
        """See Lookup. What is `local_only` is answered here, and nowhere else."""
        if request.local_only:
            return await self._local.scan(request, deadline)
        cursor = page_token.decode(request, request.page_token)
        if partition is None and not request.group:
            size = page_size(request, self._limits)
            return await page_of_store(
                self._view, request, cursor, size, lambda part, number: self.scan(part, deadline, number)
            )
        shard = self._shard(request.store, request.group) if partition is None else (request.store, partition)
        answer, forwarded = await self._routing.first_answer(
            shard, lambda lookup, until: lookup.scan(request, until, partition), deadline, kind="scan"
        )
        answer.freshness.forwarded = forwarded
        return answer

    async def versions(self, request: query.ListVersionsRequest, deadline: float) -> query.ListVersionsResponse:
        """See Lookup."""
        check_history(self._view.store(request.store))
        shard = self._shard(request.store, request.key.group)
        answer, forwarded = await self._routing.first_answer(
            shard, lambda lookup, until: lookup.versions(request, until), deadline, kind="versions"
        )
        answer.freshness.forwarded = forwarded
        return answer

    def _shard(self, store: str, group: str) -> Shard:
        return store, self._view.partition_of(store, group)
