"""Answers a batch with one call per partition, in parallel."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from query_service.cluster.partitioning import group_hash, indexes_by_partition
from query_service.cluster.peer_memory import Shard
from query_service.errors import LookupFailedError
from query_service.grpc_status import fill_key_error
from query_service.lookups.request_checks import wait_s
from query_service.lookups.routing import Answer, Ask
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query

_GATHER_S = 0.005


@dataclass
class _Part:
    """The keys and ranges of the batch that lie in one partition, and what came of them."""

    indexes: Sequence[int] = ()
    keys: list[query_pb2.KeyQuery] = field(default_factory=list)
    range_indexes: list[int] = field(default_factory=list)
    ranges: list[query_pb2.RangeQuery] = field(default_factory=list)
    answer: query.BatchGetStatesResponse | None = None
    failure: LookupFailedError | None = None

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell the caller."""
        return self.failure is not None or (self.answer is not None and bool(self.answer.results or self.answer.ranges))


class FirstAnswer(Protocol):
    """What asks for one partition; see Routing."""

    async def first_answer(
        self, shard: Shard, ask: Ask[Answer], deadline: float, patience_s: float = 0.0, kind: str = ""
    ) -> tuple[Answer, bool]:
        """See Routing."""


class RoutedBatch:
    """One batch. A partition that nobody serves fails its own keys, and no others."""

    def __init__(
        self,
        routing: FirstAnswer,
        request: query.BatchGetStatesRequest,
        partitions: int,
        deadline: float,
        monotonic: Callable[[], float],
        hash_of: Callable[[str], int] = group_hash,
    ) -> None:
        """Splits the batch by partition."""
        self._routing = routing
        self._request = request
        self._deadline = deadline
        self._monotonic = monotonic
        queries = list(request.keys)
        self._parts = {
            partition: _Part(indexes, [queries[index] for index in indexes])
            for partition, indexes in indexes_by_partition(
                (each.key.group for each in queries), partitions, hash_of
            ).items()
        }
        for index, each in enumerate(request.ranges):
            part = self._parts.setdefault(hash_of(each.group) % partitions, _Part())
            part.range_indexes.append(index)
            part.ranges.append(each)

    async def answer(self) -> query.BatchGetStatesResponse:
        """Returns what is newer.

        With `max_wait`, all partitions are asked at once first. Only when none has news are they asked to wait; the
        first with news ends the waiting of the others, which lose nothing, because the caller asks them again.
        """
        wait = wait_s(self._request)
        if wait > 0 and len(self._parts) > 1:
            await self._ask_all(0.0)
            wait = min(wait, self._deadline - self._monotonic())
            if wait > 0 and not any(part.has_news for part in self._parts.values()):
                await self._await_news(wait)
        else:
            await self._ask_all(wait)
        return self._merged()

    async def _ask_all(self, wait: float) -> None:
        await asyncio.gather(*(self._ask(partition, wait) for partition in self._parts))

    async def _await_news(self, wait: float) -> None:
        waiting = {asyncio.ensure_future(self._ask(partition, wait)): part for partition, part in self._parts.items()}
        pending = set(waiting)
        try:
            news = False
            while pending and not news:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                news = any(waiting[each].has_news for each in done)
            if pending:
                _, pending = await asyncio.wait(pending, timeout=_GATHER_S)
        finally:
            for each in pending:
                each.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _ask(self, partition: int, wait: float) -> None:
        part = self._parts[partition]
        request = self._request_for(part, wait)
        try:
            answer, forwarded = await self._routing.first_answer(
                (request.store, partition),
                lambda lookup, until: lookup.batch(request, until),
                self._deadline,
                wait,
                kind="batch",
            )
        except LookupFailedError as failure:
            part.failure = failure
            return
        for freshness in answer.freshness:
            freshness.forwarded = forwarded
        part.answer = answer

    def _request_for(self, part: _Part, wait: float) -> query.BatchGetStatesRequest:
        whole = self._request
        if len(part.keys) == len(whole.keys) and len(part.ranges) == len(whole.ranges):
            return whole
        request = query.BatchGetStatesRequest(store=whole.store, keys=part.keys, ranges=part.ranges)
        if whole.HasField("bounds"):
            request.bounds.CopyFrom(whole.bounds)
        if wait > 0:
            request.max_wait.FromNanoseconds(int(wait * 1e9))
        return request

    def _merged(self) -> query.BatchGetStatesResponse:
        if len(self._parts) == 1:
            part = next(iter(self._parts.values()))
            if part.answer is not None:
                return part.answer
        merged = query.BatchGetStatesResponse()
        for partition in sorted(self._parts):
            _merge(merged, self._parts[partition])
        return merged


def _merge(merged: query.BatchGetStatesResponse, part: _Part) -> None:
    if part.failure is not None:
        for index in part.indexes:
            fill_key_error(merged.results.add(index=index).error, part.failure)
        for index in part.range_indexes:
            fill_key_error(merged.ranges.add(index=index).error, part.failure)
    elif part.answer is not None:
        for result in part.answer.results:
            result.index = part.indexes[result.index]
        for found in part.answer.ranges:
            found.index = part.range_indexes[found.index]
        merged.results.extend(part.answer.results)
        merged.ranges.extend(part.answer.ranges)
        merged.freshness.extend(part.answer.freshness)
