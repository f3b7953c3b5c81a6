"""Lookups in the stores of this instance, and nowhere else."""

from collections.abc import Callable

from query_service.cluster.view import View
from query_service.lookups import bounds, page_token, version_token
from query_service.lookups.answers import absent, fill_state, is_value
from query_service.lookups.local_batch import LocalBatch
from query_service.lookups.local_scan import fill_page
from query_service.lookups.local_versions import check_history, fill_versions, version_at
from query_service.lookups.request_checks import Limits, page_size
from query_service.lookups.store_scan import page_of_store
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_keys import MAX_OFFSET, row_key
from statecast.query.v1 import query_service_pb2 as query


class LocalLookup:
    """A Lookup over the partitions that this instance serves; raises NotServedError for all others.

    The freshness of an answer is taken before the store is read, so it never claims more than was read.
    """

    def __init__(self, view: View, limits: Limits, monotonic: Callable[[], float]) -> None:
        """Reads the hosts of the view."""
        self._view = view
        self._limits = limits
        self._monotonic = monotonic

    async def get(self, request: query.GetStateRequest, deadline: float) -> query.GetStateResponse:
        """See Lookup."""
        key = request.key
        as_of = request.HasField("as_of")
        host = self._host(request.store, key.group)
        if as_of:
            check_history(host.definition)
        if request.HasField("bounds"):
            await bounds.wait_until_met(host, request.bounds, deadline, self._monotonic)
        freshness = host.freshness(self._view.me.instance)
        stored_key = row_key(key.group, key.sort, key.member)
        value = version_at(host, stored_key, request.as_of) if as_of else host.read([stored_key])[0]
        if not is_value(value):
            raise absent(request.store, key, host.place.epoch, value, freshness)
        answer = query.GetStateResponse(freshness=freshness)
        fill_state(answer.state, key, host.place.epoch, value)
        return answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        return await LocalBatch(self._view, request, self._limits, deadline, self._monotonic).answer()

    async def scan(
        self, request: query.ScanStatesRequest, deadline: float, partition: int | None = None
    ) -> query.ScanStatesResponse:
        """See Lookup. Without group and partition: all partitions of the store, or, `local_only`, those it owns."""
        cursor = page_token.decode(request, request.page_token)
        if partition is None and not request.group:
            size = page_size(request, self._limits)
            return await page_of_store(
                self._view, request, cursor, size, lambda part, number: self.scan(part, deadline, number)
            )
        if partition is None:
            host = self._host(request.store, request.group)
        else:
            host = self._view.host(request.store, partition)
        if request.HasField("bounds"):
            await bounds.wait_until_met(host, request.bounds, deadline, self._monotonic)
        answer = query.ScanStatesResponse(freshness=host.freshness(self._view.me.instance))
        last_key = None if cursor is None else cursor.last_key
        fill_page(answer, request, host, last_key, page_size(request, self._limits))
        return answer

    async def versions(self, request: query.ListVersionsRequest, deadline: float) -> query.ListVersionsResponse:
        """See Lookup."""
        host = self._host(request.store, request.key.group)
        check_history(host.definition)
        before_offset = version_token.decode(request, host.place.epoch)
        if request.HasField("bounds"):
            await bounds.wait_until_met(host, request.bounds, deadline, self._monotonic)
        answer = query.ListVersionsResponse(freshness=host.freshness(self._view.me.instance))
        fill_versions(answer, request, host, before_offset, page_size(request, self._limits))
        if not answer.versions and before_offset == MAX_OFFSET:
            raise absent(request.store, request.key, host.place.epoch, None, answer.freshness)
        return answer

    def _host(self, store: str, group: str) -> PartitionHost:
        return self._view.host(store, self._view.partition_of(store, group))
