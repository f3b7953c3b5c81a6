"""Lookups in the stores of this instance, and nowhere else."""

from collections.abc import Callable

from typing_extensions import override

from query_service import lookups
from query_service.cluster.view import View
from query_service.errors import AbsentError
from query_service.freshness import Freshness
from query_service.lookups import page_token, scan
from query_service.lookups.local_batch import LocalBatch
from query_service.lookups.replica_reads import absence_of, check_history, is_value, version_at, wait_until_met
from query_service.lookups.request_checks import Limits
from query_service.lookups.split_batch import SplitBatch
from query_service.storage.replica import Replica
from query_service.storage.store_keys import MAX_OFFSET, offset_of, row_key


class LocalLookup(lookups.Lookup):
    """Looks up in the partitions that this instance serves; raises NotServedError for all others.

    The freshness of a result is taken before the store is read, so it never claims more than was read.
    """

    def __init__(self, view: View, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._view = view
        self._limits = limits
        self._monotonic = monotonic

    @override
    async def get(self, query: lookups.GetQuery, deadline: float) -> lookups.GetResult:
        replica = self._replica(query.store, query.key.group)
        if query.as_of is not None:
            check_history(replica.definition)
        if query.bounds is not None:
            await wait_until_met(replica, query.bounds, deadline, self._monotonic)
        freshness = replica.freshness(self._view.me.instance)
        key = row_key(*query.key)
        value = replica.read([key])[0] if query.as_of is None else version_at(replica, key, query.as_of)
        if not is_value(value):
            raise _absent(query.store, query.key, value, freshness)
        return lookups.GetResult(freshness.epoch, value, freshness)

    @override
    async def batch(self, query: lookups.BatchQuery, deadline: float) -> lookups.BatchResult:
        async def look_up(partition: int, part: lookups.BatchQuery) -> lookups.BatchResult:
            replica = self._view.replica(query.store, partition)
            await wait_until_met(replica, query.bounds, deadline, self._monotonic)
            until = min(self._monotonic() + part.max_wait_s, deadline)
            return await LocalBatch(replica, part, self._limits, self._view.me.instance).result(until, self._monotonic)

        partitions = self._view.topic(query.store).partitions
        hash_group = self._view.hash_of(query.store)
        batch = SplitBatch(query, partitions, hash_group, look_up, deadline, self._monotonic)
        if len(batch.partitions) == 1:  # as peers ask: the whole batch fails, so that they ask another replica
            return await look_up(batch.partitions[0], query)
        return await batch.result()

    @override
    async def scan(self, query: lookups.ScanQuery, deadline: float, partition: int | None = None) -> lookups.PageResult:
        """Without group and partition: all partitions of the store, or, `local_only`, those it owns."""
        cursor = page_token.decode_scan(query, query.page_token)
        size = self._limits.rows(query.page_size)
        if partition is None and not query.group:
            partitions = scan.partitions_of(self._view, query, cursor)
            return await scan.store_page(
                query, cursor, partitions, size, lambda part, number: self.scan(part, deadline, number)
            )
        number = self._view.partition_of(query.store, query.group) if partition is None else partition
        replica = self._view.replica(query.store, number)
        await wait_until_met(replica, query.bounds, deadline, self._monotonic)
        freshness = replica.freshness(self._view.me.instance)
        return scan.partition_page(query, replica, cursor.last_key if cursor else None, size, freshness)

    @override
    async def versions(self, query: lookups.VersionsQuery, deadline: float) -> lookups.VersionsResult:
        replica = self._replica(query.store, query.key.group)
        check_history(replica.definition)
        before_offset = page_token.decode_versions(query, replica.topic.epoch)
        await wait_until_met(replica, query.bounds, deadline, self._monotonic)
        freshness = replica.freshness(self._view.me.instance)
        result = _page_of_versions(query, replica, before_offset, self._limits.rows(query.page_size), freshness)
        if not result.values and before_offset == MAX_OFFSET:
            raise _absent(query.store, query.key, None, freshness)
        return result

    def _replica(self, store: str, group: str) -> Replica:
        return self._view.replica(store, self._view.partition_of(store, group))


def _page_of_versions(
    query: lookups.VersionsQuery, replica: Replica, before_offset: int, size: int, freshness: Freshness
) -> lookups.VersionsResult:
    """Returns at most `size` versions, or 1 MiB, before an offset, and the next page's token when there are more."""
    values: list[bytes] = []
    used = 0
    token = ""
    for value in replica.versions(row_key(*query.key), before_offset):
        if len(values) == size or used >= scan.MAX_PAGE_BYTES:
            token = page_token.encode_versions(query, freshness.epoch, before_offset)
            break
        before_offset = offset_of(value)
        used += len(value)
        values.append(value)
    return lookups.VersionsResult(freshness.epoch, values, token, freshness)


def _absent(store: str, key: lookups.Key, value: bytes | None, freshness: Freshness) -> AbsentError:
    return AbsentError(f"key: `{key.group}` has no value in `{store}`", absence_of(value, freshness), freshness)
