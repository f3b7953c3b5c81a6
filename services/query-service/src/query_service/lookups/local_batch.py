"""Answers a batch from the partitions that this instance serves, at once or when the first key or range changes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from query_service.cluster.partitioning import indexes_by_partition
from query_service.cluster.view import View
from query_service.errors import InvalidRequestError, LookupFailedError, TooLargeError
from query_service.grpc_status import fill_key_error
from query_service.lookups import bounds
from query_service.lookups.answers import fill_absence, fill_state
from query_service.lookups.local_range import RangeReader
from query_service.lookups.request_checks import Limits, wait_s
from query_service.storage.changes import Watcher
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_keys import DELETED, FLAGS_AT, offset_of, row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query

_GATHER_S = 0.003


@dataclass
class _Shard:
    """The keys and ranges of the batch that lie in one partition."""

    host: PartitionHost
    indexes: Sequence[int] = ()
    queries: list[query_pb2.KeyQuery] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    ranges: list[tuple[int, query_pb2.RangeQuery]] = field(default_factory=list)


class LocalBatch:
    """One batch. When no partition of it can answer, the first failure is raised; else each failed key says why."""

    def __init__(
        self,
        view: View,
        request: query.BatchGetStatesRequest,
        limits: Limits,
        deadline: float,
        monotonic: Callable[[], float],
    ) -> None:
        """Splits the batch by partition. Raises NotServedError while the topic is not known."""
        self._instance = view.me.instance
        self._request = request
        self._limits = limits
        self._deadline = deadline
        self._monotonic = monotonic
        self._failures: dict[int, LookupFailedError] = {}
        self._range_failures: dict[int, LookupFailedError] = {}
        self._shards: dict[int, _Shard] = {}
        self._split(view, view.topic(request.store).partitions)

    async def answer(self) -> query.BatchGetStatesResponse:
        """Returns what is newer, waiting up to `max_wait` for a first change."""
        if self._request.HasField("bounds"):
            for partition in list(self._shards):
                await self._hold_back(partition)
        failures = [*self._failures.values(), *self._range_failures.values()]
        if failures and not self._shards:
            raise failures[0]
        wait = wait_s(self._request)
        return await self._await_change(wait) if wait > 0 and not failures else self._look()

    def _split(self, view: View, partitions: int) -> None:
        queries = list(self._request.keys)
        groups = (each.key.group for each in queries)
        hash_of = view.hash_of(self._request.store)
        for partition, indexes in indexes_by_partition(groups, partitions, hash_of).items():
            try:
                host = view.host(self._request.store, partition)
            except LookupFailedError as failure:
                self._failures.update(dict.fromkeys(indexes, failure))
                continue
            own = [queries[index] for index in indexes]
            keys = [row_key(key.group, key.sort, key.member) for key in (each.key for each in own)]
            self._shards[partition] = _Shard(host, indexes, own, keys)
        for index, each in enumerate(self._request.ranges):
            partition = hash_of(each.group) % partitions
            try:
                shard = self._shards.get(partition) or _Shard(view.host(self._request.store, partition))
            except LookupFailedError as failure:
                self._range_failures[index] = failure
                continue
            self._shards[partition] = shard
            shard.ranges.append((index, each))

    async def _hold_back(self, partition: int) -> None:
        shard = self._shards[partition]
        try:
            await bounds.wait_until_met(shard.host, self._request.bounds, self._deadline, self._monotonic)
        except LookupFailedError as failure:
            self._failures.update(dict.fromkeys(shard.indexes, failure))
            self._range_failures.update((index, failure) for index, _ in shard.ranges)
            del self._shards[partition]

    async def _await_change(self, wait: float) -> query.BatchGetStatesResponse:
        until = min(self._monotonic() + wait, self._deadline)
        groups = {each.group.encode() for each in self._request.ranges}
        watcher = Watcher({key for shard in self._shards.values() for key in shard.keys}, groups)
        with ExitStack() as watching:
            for shard in self._shards.values():
                watching.enter_context(shard.host.changes.watched_by(watcher))
            answer = self._look()
            while not _has_news(answer) and await watcher.wait(until - self._monotonic()):
                await asyncio.sleep(_GATHER_S)
                answer = self._look()
            return answer if _has_news(answer) else self._look()

    def _look(self) -> query.BatchGetStatesResponse:
        answer = query.BatchGetStatesResponse()
        reader = RangeReader(self._limits.page_size, self._limits.default_page_size)
        for partition in sorted(self._shards):
            self._look_in(self._shards[partition], reader, answer)
        for index, failure in self._failures.items():
            fill_key_error(answer.results.add(index=index).error, failure)
        for index, failure in self._range_failures.items():
            fill_key_error(answer.ranges.add(index=index).error, failure)
        return answer

    def _look_in(self, shard: _Shard, reader: RangeReader, answer: query.BatchGetStatesResponse) -> None:
        host = shard.host
        freshness = host.freshness(self._instance)
        answer.freshness.append(freshness)
        if shard.keys:
            self._look_up(shard, freshness, answer)
        for index, asked in shard.ranges:
            result = query_pb2.RangeResult(index=index)
            try:
                has_news = reader.fill(result, host, asked, freshness.current_through.offset)
            except (InvalidRequestError, TooLargeError) as failure:
                result = query_pb2.RangeResult(index=index)
                fill_key_error(result.error, failure)
                has_news = True
            if has_news:
                answer.ranges.append(result)

    def _look_up(self, shard: _Shard, freshness: query_pb2.Freshness, answer: query.BatchGetStatesResponse) -> None:
        host = shard.host
        epoch = host.place.epoch
        values = host.read(shard.keys)
        purged_through = host.store.purged_through  # after the values: see PartitionStore.forget_deletions
        add = answer.results.add
        for index, each, value in zip(shard.indexes, shard.queries, values, strict=True):
            after = each.after
            if after.epoch == epoch and (purged_through if value is None else offset_of(value)) <= after.offset:
                continue
            result = add()
            result.index = index
            if value is None or value[FLAGS_AT] & DELETED:
                fill_absence(result.absence, epoch, value, freshness.current_through, purged_through)
            else:
                fill_state(result.state, each.key, epoch, value)


def _has_news(answer: query.BatchGetStatesResponse) -> bool:
    return bool(answer.results or answer.ranges)
