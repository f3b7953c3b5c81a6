"""Lookups in the stores of this instance, and nowhere else."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from typing_extensions import override

from query_service import lookups
from query_service.cluster.view import View
from query_service.errors import AbsentError, InvalidRequestError, TooLargeError
from query_service.lookups import BatchQuery, BatchResult, IndexedValue, RangeQuery, RangeResult, Row, page_token, scan
from query_service.lookups.replica_reads import absence_of, check_history, is_value, version_at, wait_until_met
from query_service.lookups.request_checks import Limits
from query_service.lookups.split_batch import parts_of, split_batch
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, MAX_OFFSET, group_range, offset_of, row_key
from statecast.position import Position

MAX_KEYS_AT_ONCE = 1000
"""The most keys of a batch that are looked up on the event loop: some milliseconds, in which no other call goes on."""

_GATHER_S = 0.003
_MAX_VISITS = 20_000
_MAX_VISITS_OF_RANGE = 10_000


@dataclass(eq=False)
class LocalLookup(lookups.Lookup):
    """Looks up in the partitions that this instance serves; raises NotServedError for all others.

    The freshness of a result is taken before the store is read, so it never claims more than was read.
    """

    view: View
    limits: Limits
    monotonic: Callable[[], float]

    @override
    async def get(self, query: lookups.GetQuery, deadline: float) -> lookups.GetResult:
        replica = self.view.replica(*self.view.shard_of(query.store, query.key.group))
        if query.as_of is not None:
            check_history(replica.definition)
        if query.bounds is not None:
            await wait_until_met(replica, query.bounds, deadline, self.monotonic)
        freshness = replica.freshness(self.view.me.instance)
        key = row_key(*query.key)
        value = replica.read([key])[0] if query.as_of is None else version_at(replica, key, query.as_of)
        if not is_value(value):
            raise _absent(query.store, query.key, value, freshness)
        return lookups.GetResult(value, freshness)

    @override
    async def batch(self, query: BatchQuery, deadline: float) -> BatchResult:
        async def look_up(partition: int, part: BatchQuery) -> BatchResult:
            replica = self.view.replica(query.store, partition)
            await wait_until_met(replica, query.bounds, deadline, self.monotonic)
            return await self._await_news(replica, part, min(self.monotonic() + part.max_wait_s, deadline))

        parts = parts_of(query, self.view)
        if len(parts) == 1:  # as peers ask: the whole batch fails, so that they ask another replica
            return await look_up(next(iter(parts)), query)
        return await split_batch(parts, look_up, query.max_wait_s, deadline, self.monotonic)

    @override
    async def scan(self, query: lookups.ScanQuery, deadline: float, partition: int | None = None) -> lookups.PageResult:
        """Without group and partition: all partitions of the store, or, `local_only`, those it owns."""
        if partition is None and not query.group:
            return await scan.store_page(query, self.view, self.limits, lambda part, n: self.scan(part, deadline, n))
        cursor = page_token.decode_scan(query, query.page_token)
        number = self.view.shard_of(query.store, query.group)[1] if partition is None else partition
        replica = self.view.replica(query.store, number)
        await wait_until_met(replica, query.bounds, deadline, self.monotonic)
        freshness = replica.freshness(self.view.me.instance)
        # In a thread, as all reads of many rows: while the event loop stands still, peers take the instance for dead.
        rows = self.limits.rows(query.page_size)
        return await asyncio.to_thread(scan.partition_page, query, replica, cursor, rows, freshness)

    @override
    async def versions(self, query: lookups.VersionsQuery, deadline: float) -> lookups.VersionsResult:
        replica = self.view.replica(*self.view.shard_of(query.store, query.key.group))
        check_history(replica.definition)
        next_offset = before_offset = page_token.decode_versions(query, replica.topic.epoch)
        await wait_until_met(replica, query.bounds, deadline, self.monotonic)
        freshness = replica.freshness(self.view.me.instance)
        size, used, token = self.limits.rows(query.page_size), 0, ""
        values: list[bytes] = []
        for value in replica.versions(row_key(*query.key), before_offset):
            if len(values) == size or used >= scan.MAX_PAGE_BYTES:
                token = page_token.encode_versions(query, freshness.epoch, next_offset)
                break
            next_offset = offset_of(value)
            used += len(value)
            values.append(value)
        if not values and before_offset == MAX_OFFSET:
            raise _absent(query.store, query.key, None, freshness)
        return lookups.VersionsResult(values, token, freshness)

    async def _await_news(self, replica: Replica, query: BatchQuery, until: float) -> BatchResult:
        """Returns the newer states, waiting until a time at most for the first change of a key or range."""
        keys = [row_key(group, sort, member) for group, sort, member, _, _, _ in query.keys]
        if until <= self.monotonic():
            return await self._read(replica, query, keys)
        groups = {range_query.group.encode() for range_query in query.ranges}
        with replica.changes.watch(set(keys), groups) as watcher:
            result = await self._read(replica, query, keys)
            while not result.has_news and await watcher.wait(until - self.monotonic()):
                await asyncio.sleep(_GATHER_S)
                result = await self._read(replica, query, keys)
            return result if result.has_news else await self._read(replica, query, keys)

    async def _read(self, replica: Replica, query: BatchQuery, keys: list[bytes]) -> BatchResult:
        if len(keys) <= MAX_KEYS_AT_ONCE and all(_is_in_memory(replica, each) for each in query.ranges):
            return self._look_up(replica, query, keys)
        return await asyncio.to_thread(self._look_up, replica, query, keys)

    def _look_up(self, replica: Replica, query: BatchQuery, keys: list[bytes]) -> BatchResult:
        places = range(len(query.keys)), range(len(query.ranges))
        freshness = replica.freshness(self.view.me.instance)._replace(keys=places[0], ranges=places[1])
        result = BatchResult(_changed_keys(replica, query, keys, freshness) if keys else [], freshness=[freshness])
        reader = RangeReader(replica, freshness, self.limits)
        for index, range_query in enumerate(query.ranges):
            try:
                if (range_result := reader.read(range_query)) is not None:
                    result.ranges.append((index, range_result))
            except (InvalidRequestError, TooLargeError) as failure:
                result.ranges.append((index, failure))
        return result


def _absent(store: str, key: lookups.Key, value: bytes | None, freshness: Freshness) -> AbsentError:
    return AbsentError.of(store, key.group, absence_of(value, freshness), freshness)


def _changed_keys(replica: Replica, query: BatchQuery, keys: list[bytes], freshness: Freshness) -> list[IndexedValue]:
    epoch = freshness.epoch
    values = replica.read(keys)
    purged_offset = replica.store.purged_offset  # after the values: see PartitionStore.purge_deletions
    changed: list[IndexedValue] = []
    add = changed.append
    queries = zip(query.keys, values, strict=True)
    for index, ((_, _, _, after_epoch, after_offset, _), value) in enumerate(queries):
        if after_epoch == epoch and (purged_offset if value is None else offset_of(value)) <= after_offset:
            continue
        if value is None or value[FLAGS_AT] & DELETED:
            add((index, epoch, absence_of(value, freshness, purged_offset)))
        else:
            add((index, epoch, value))
    return changed


def _is_in_memory(replica: Replica, query: RangeQuery) -> bool:
    """Whether it is known without reading rows which of a range have changed."""
    return query.after is not None and not query.whole and replica.changes.remembers(query.after.offset)


class RangeReader:
    """Reads the ranges of one batch, as of a freshness that was taken before.

    It reads at most a fixed number of rows in all, so that it never holds the event loop for long: a range that would
    need more fails with TooLargeError. Deletions count only where they must be told.
    """

    def __init__(self, replica: Replica, freshness: Freshness, limits: Limits) -> None:
        self._replica = replica
        self._freshness = freshness
        self._position = Position(freshness.epoch, freshness.applied_offset)
        self._limits = limits
        self._visits_left = _MAX_VISITS

    def read(self, query: RangeQuery) -> RangeResult | None:
        """Returns the news of a range, or None. Raises as Replica does; InvalidRequestError if there are no ranges."""
        if self._replica.definition.retain is not None:
            name = self._replica.definition.name
            raise InvalidRequestError(f"ranges: rows of `{name}` leave it in time, without a record: scan it instead")
        changed = self._changed(query)
        if changed is None:
            return self._whole(query)
        if not changed and not query.whole:
            return None
        removals = [(key, absence_of(value, self._freshness)) for key, value in changed if not is_value(value)]
        if query.whole or len(changed) > self._limits.rows(query.limit):
            return self._whole(query)._replace(removals=removals, removals_complete=True)
        rows = [Row(key, self._position.epoch, value) for key, value in changed if is_value(value)]
        return RangeResult(self._position, rows, removals, removals_complete=True)

    def _changed(self, query: RangeQuery) -> Sequence[tuple[bytes, bytes | None]] | None:
        """The rows of the range that changed since the caller looked, in that order; None when that is not known."""
        if query.after is None or query.after.epoch != self._freshness.epoch:
            return None
        after = query.after.offset
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        keys = self._replica.changes.changed_after(query.group.encode(), after)
        if keys is None:
            return self._changed_on_disk(first, end, after)
        keys = [key for key in keys if first <= key < end]
        if not keys:
            return []
        self._visit(len(keys))
        return list(zip(keys, self._replica.read(keys), strict=True))

    def _changed_on_disk(self, first: bytes, end: bytes, after: int) -> Sequence[tuple[bytes, bytes]] | None:
        changed: list[tuple[bytes, bytes]] = []
        rows = chain(self._replica.scan(first, end, reverse=False), self._replica.deletions(first, end))
        for visits, (key, value) in enumerate(rows, 1):
            if visits > _MAX_VISITS_OF_RANGE:
                return None
            self._visit(1)
            if offset_of(value) > after:
                changed.append((key, value))
        # After the rows, so that no deletion can have been forgotten unseen: see PartitionStore.purge_deletions.
        if self._replica.store.purged_offset > after:
            return None
        return sorted(changed, key=lambda row: offset_of(row[1]))

    def _whole(self, query: RangeQuery) -> RangeResult:
        limit = self._limits.rows(query.limit)
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        rows: list[Row] = []
        for key, value in self._replica.scan(first, end, reverse=query.reverse):
            self._visit(1)
            if len(rows) == limit:
                return RangeResult(self._position, rows, whole=True, more=True)
            rows.append(Row(key, self._position.epoch, value))
        return RangeResult(self._position, rows, whole=True)

    def _visit(self, rows: int) -> None:
        self._visits_left -= rows
        if self._visits_left < 0:
            raise TooLargeError("ranges: the answer would read too many rows: ask for fewer or smaller ones at a time")
