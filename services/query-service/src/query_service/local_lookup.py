"""Lookups in the stores of this instance, and nowhere else."""

from collections.abc import Callable

from query_service import bounds, page_token
from query_service.answers import fill_absence, fill_state, is_value
from query_service.errors import AbsentError
from query_service.local_batch import LocalBatch
from query_service.local_scan import fill_page
from query_service.partition_host import PartitionHost
from query_service.partitioning import partition_of
from query_service.request_checks import Limits, page_size
from query_service.store_keys import row_key
from query_service.view import View
from statecast.query.v1 import query_pb2
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
        host = self._host(request.store, key.group)
        if request.HasField("bounds"):
            await bounds.wait_until_met(host, request.bounds, deadline, self._monotonic)
        freshness = host.freshness(self._view.me.instance)
        value = host.read([row_key(key.group, key.sort, key.member)])[0]
        if not is_value(value):
            absence = query_pb2.Absence()
            fill_absence(absence, host.place.epoch, value, freshness.current_through)
            raise AbsentError(f"key: `{key.group}` has no value in `{request.store}`", absence, freshness)
        answer = query.GetStateResponse(freshness=freshness)
        fill_state(answer.state, key, host.place.epoch, value)
        return answer

    async def batch(self, request: query.BatchGetStatesRequest, deadline: float) -> query.BatchGetStatesResponse:
        """See Lookup."""
        return await LocalBatch(self._view, request, deadline, self._monotonic).answer()

    async def scan(self, request: query.ScanStatesRequest, deadline: float) -> query.ScanStatesResponse:
        """See Lookup."""
        last_key = page_token.decode(request)
        host = self._host(request.store, request.group)
        if request.HasField("bounds"):
            await bounds.wait_until_met(host, request.bounds, deadline, self._monotonic)
        answer = query.ScanStatesResponse(freshness=host.freshness(self._view.me.instance))
        fill_page(answer, request, host, last_key, page_size(request, self._limits))
        return answer

    def _host(self, store: str, group: str) -> PartitionHost:
        return self._view.host(store, partition_of(group, self._view.topic(store).partitions))
