"""Splits a batch by partition, looks up all parts at once and merges their results."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from query_service.errors import LookupFailedError
from query_service.lookups import BatchQuery, BatchResult, KeyQuery, RangeQuery
from statecast.partitioning import GroupHash, indexes_by_partition

_GATHER_S = 0.005


@dataclass(slots=True)
class _Part:
    """The keys and ranges of the batch that lie in one partition, and their result."""

    indexes: Sequence[int] = ()
    keys: Sequence[KeyQuery] = ()
    range_indexes: list[int] = field(default_factory=list)
    ranges: list[RangeQuery] = field(default_factory=list)
    result: BatchResult = field(default_factory=BatchResult)


class SplitBatch:
    """One batch. A partition that cannot be looked up fails its own keys, and no others."""

    def __init__(
        self,
        query: BatchQuery,
        partitions: int,
        hash_group: GroupHash,
        look_up: Callable[[int, BatchQuery], Awaitable[BatchResult]],
        deadline: float,
        monotonic: Callable[[], float],
    ) -> None:
        """`look_up` looks up in one partition, as Lookup does."""
        self._query = query
        self._look_up = look_up
        self._deadline = deadline
        self._monotonic = monotonic
        keys = query.keys
        self._parts = {
            partition: _Part(indexes, keys if len(indexes) == len(keys) else [keys[index] for index in indexes])
            for partition, indexes in indexes_by_partition((key[0] for key in keys), partitions, hash_group).items()
        }
        for index, range_query in enumerate(query.ranges):
            part = self._parts.setdefault(hash_group(range_query.group) % partitions, _Part())
            part.range_indexes.append(index)
            part.ranges.append(range_query)

    @property
    def partitions(self) -> list[int]:
        """The partitions of the batch."""
        return list(self._parts)

    async def result(self) -> BatchResult:
        """Returns what is newer.

        With `max_wait_s`, all partitions are asked at once first. Only when none has news are they asked to wait; the
        first with news ends the waiting of the others, which lose nothing, because the caller asks them again.
        """
        wait_s = self._query.max_wait_s
        if wait_s > 0 and len(self._parts) > 1:
            await self._look_up_all(0.0)
            wait_s = min(wait_s, self._deadline - self._monotonic())
            if wait_s > 0 and not any(part.result.has_news for part in self._parts.values()):
                await self._await_news(wait_s)
        else:
            await self._look_up_all(wait_s)
        return self._merged()

    async def _look_up_all(self, wait_s: float) -> None:
        await asyncio.gather(*(self._look_up_part(partition, wait_s) for partition in self._parts))

    async def _await_news(self, wait_s: float) -> None:
        waiting = {
            asyncio.ensure_future(self._look_up_part(partition, wait_s)): part
            for partition, part in self._parts.items()
        }
        pending = set(waiting)
        try:
            news = False
            while pending and not news:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                news = any(waiting[task].result.has_news for task in done)
            if pending:
                _, pending = await asyncio.wait(pending, timeout=_GATHER_S)
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _look_up_part(self, partition: int, wait_s: float) -> None:
        part = self._parts[partition]
        query = self._query._replace(keys=part.keys, ranges=part.ranges, max_wait_s=wait_s)
        try:
            part.result = await self._look_up(partition, query)
        except LookupFailedError as failure:
            part.result = BatchResult(
                [(index, 0, failure) for index in range(len(part.keys))],
                [(index, failure) for index in range(len(part.ranges))],
            )

    def _merged(self) -> BatchResult:
        if len(self._parts) == 1:
            return next(iter(self._parts.values())).result
        merged = BatchResult()
        for _, part in sorted(self._parts.items()):
            merged.keys += [(part.indexes[index], epoch, value) for index, epoch, value in part.result.keys]
            merged.ranges += [(part.range_indexes[index], result) for index, result in part.result.ranges]
            merged.freshness += part.result.freshness
        return merged
