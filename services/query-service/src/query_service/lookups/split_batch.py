"""Splits a batch by partition, looks up all parts at once and merges their results."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from query_service.cluster.view import View
from query_service.errors import LookupFailedError, MisplacedKeyError
from query_service.lookups import BatchQuery, BatchResult
from query_service.storage.progress import Freshness
from statecast.partitioning import PARTITIONERS, indexes_by_partition

_GATHER_S = 0.005

LookUp = Callable[[int, BatchQuery], Awaitable[BatchResult]]
"""Looks up in one partition, as Lookup.batch does."""


@dataclass(slots=True)
class Part:
    """The part of a batch in one partition: its query, the indexes of its keys and ranges, and the latest result."""

    query: BatchQuery
    key_indexes: Sequence[int]
    range_indexes: Sequence[int]
    result: BatchResult = field(default_factory=BatchResult)


def parts_of(query: BatchQuery, view: View) -> dict[int, Part]:
    """Returns the parts of a batch by their partition, in order. Raises as View.topic does."""
    partitions, hash_group = view.topic(query.store).partitions, PARTITIONERS[view.store(query.store).partitioner]
    key_indexes = indexes_by_partition((key[0] for key in query.keys), partitions, hash_group)
    range_indexes = indexes_by_partition((each.group for each in query.ranges), partitions, hash_group)
    parts: dict[int, Part] = {}
    for partition in sorted(key_indexes.keys() | range_indexes.keys()):
        part = Part(query, key_indexes.get(partition, ()), range_indexes.get(partition, ()))
        if len(part.key_indexes) < len(query.keys) or len(part.range_indexes) < len(query.ranges):
            keys = [query.keys[index] for index in part.key_indexes]
            part.query = query._replace(keys=keys, ranges=[query.ranges[index] for index in part.range_indexes])
        parts[partition] = part
    return parts


def without_misplaced(query: BatchQuery, result: BatchResult, view: View) -> BatchResult:
    """Returns the result with failures for keys and ranges of groups that View.check_placed refuses."""
    failures = {}
    for group in {key[0] for key in query.keys} | {each.group for each in query.ranges}:
        try:
            view.check_placed(query.store, group)
        except MisplacedKeyError as failure:
            failures[group] = failure
    key_failures = {index: failures[key[0]] for index, key in enumerate(query.keys) if key[0] in failures}
    range_failures = {index: failures[each.group] for index, each in enumerate(query.ranges) if each.group in failures}
    keys = [each for each in result.keys if each[0] not in key_failures]
    ranges = [each for each in result.ranges if each[0] not in range_failures]
    return BatchResult(
        [*keys, *((index, 0, failure) for index, failure in key_failures.items())],
        [*ranges, *range_failures.items()],
        result.freshness,
    )


async def split_batch(
    parts: Mapping[int, Part], look_up: LookUp, wait_s: float, deadline: float, monotonic: Callable[[], float]
) -> BatchResult:
    """Returns all newer states. A partition that cannot be looked up fails its own keys and ranges, and no others.

    With `wait_s`, all partitions are asked at once first. Only when none has news are they asked to wait; the first
    with news ends the waiting of the others, which lose nothing, because the caller asks them again.
    """

    async def has_news(partition: int, wait_s: float) -> bool:
        part = parts[partition]
        try:
            part.result = await look_up(partition, part.query._replace(max_wait_s=wait_s))
        except LookupFailedError as failure:
            part.result = BatchResult(
                [(index, 0, failure) for index in range(len(part.key_indexes))],
                [(index, failure) for index in range(len(part.range_indexes))],
            )
        return part.result.has_news

    several = len(parts) > 1
    news = await asyncio.gather(*(has_news(partition, 0.0 if several else wait_s) for partition in parts))
    wait_s = min(wait_s, deadline - monotonic())
    if several and wait_s > 0 and not any(news):
        await _until_any(has_news(partition, wait_s) for partition in parts)
    return _merged(parts)


async def _until_any(looks: Iterable[Coroutine[None, None, bool]]) -> None:
    tasks = [asyncio.ensure_future(look) for look in looks]
    try:
        for finished in asyncio.as_completed(tasks):
            if await finished:
                await asyncio.wait(tasks, timeout=_GATHER_S)
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _merged(parts: Mapping[int, Part]) -> BatchResult:
    if len(parts) == 1:
        return next(iter(parts.values())).result
    merged = BatchResult()
    for part in parts.values():
        merged.keys += [(part.key_indexes[index], epoch, value) for index, epoch, value in part.result.keys]
        merged.ranges += [(part.range_indexes[index], result) for index, result in part.result.ranges]
        merged.freshness += [_placed(freshness, part) for freshness in part.result.freshness]
    return merged


def _placed(freshness: Freshness, part: Part) -> Freshness:
    """Returns the freshness with the places that keys and ranges have in the whole batch."""
    keys = [part.key_indexes[place] for place in freshness.keys]
    return freshness._replace(keys=keys, ranges=[part.range_indexes[place] for place in freshness.ranges])
