"""Lookups at whichever replica answers: the owner first, the next on failure."""

from collections.abc import Callable

from query_service import page_token
from query_service.partitioning import partition_of
from query_service.peer_memory import Shard
from query_service.routed_batch import RoutedBatch
from query_service.routing import Routing
from query_service.view import View
from statecast.query.v1 import query_service_pb2 as query


class RoutedLookup:
    """A Lookup over all partitions of all stores. Raises UnknownStoreError for a store that there is not."""

    def __init__(self, view: View, routing: Routing, monotonic: Callable[[], float]) -> None:
        """Routes by the view's topics."""
        self._view = view
        self._routing = routing
        self._monotonic = monotonic

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        shard = self._shard(request.store, request.key.group)
        answer, forwarded = await self._routing.first_answer(
            shard, lambda lookup, until: lookup.get(request, until), deadline
        )
        answer.freshness.forwarded = forwarded
        return answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        partitions = self._view.topic(request.store).partitions
        return await RoutedBatch(self._routing, request, partitions, deadline, self._monotonic).answer()

    async def scan(self, request: query.ScanStatesRequest, deadline: float) -> query.ScanStatesResponse:
        """See Lookup."""
        shard = self._shard(request.store, request.group)
        page_token.decode(request)
        answer, forwarded = await self._routing.first_answer(
            shard, lambda lookup, until: lookup.scan(request, until), deadline
        )
        answer.freshness.forwarded = forwarded
        return answer

    def _shard(self, store: str, group: str) -> Shard:
        return store, partition_of(group, self._view.topic(store).partitions)
