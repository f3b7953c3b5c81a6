"""Splits a batch by partition, reads the parts that lie here, and joins the encoded parts of a response."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from query_service.cluster.view import View
from query_service.errors import InvalidRequestError, LookupFailedError, TooLargeError
from query_service.reads.messages import absence_of
from query_service.reads.ranges import RangeReader
from query_service.reads.request_checks import Limits, Room, check_key_query
from query_service.reads.status import fill_key_error
from query_service.reads.wire import (
    FIRST,
    SECOND,
    THIRD,
    epoch_bytes,
    freshness_bytes,
    header_fields,
    index_bytes,
    places_bytes,
    sized,
    state_bytes,
    varint,
)
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

MAX_KEYS_AT_ONCE = 1000
"""The most keys of a batch that are read on the event loop: some milliseconds, in which no other call goes on."""

_KEYS_AT_ONCE = 256
"""The most values in memory beside the answer."""
_GATHER_S = 0.005
_SAMPLED = 16
"""One of so many keys says whether those of a batch are in a cache."""

_Result = TypeVar("_Result")

Asked = tuple[int, bytes, int, int]
"""Index in the batch, key in the store, and epoch and offset that the caller has; plain for speed."""


@dataclass(slots=True, eq=False)
class Part:
    """The keys of a batch in one partition, and the indexes of its ranges there."""

    partition: int
    keys: list[Asked] = field(default_factory=list)
    ranges: list[int] = field(default_factory=list)

    @property
    def key_indexes(self) -> list[int]:
        return [index for index, _, _, _ in self.keys]


@dataclass(slots=True, eq=False)
class Pieces:
    """The encoded fields of a BatchGetStatesResponse, from wherever they come; the freshness by partition."""

    room: Room
    results: list[bytes] = field(default_factory=list)
    ranges: list[bytes] = field(default_factory=list)
    fresh: dict[int, bytes] = field(default_factory=dict)
    news: int = 0
    """How many keys and ranges have a result."""

    def encoded(self) -> bytes:
        return b"".join((*self.results, *(self.fresh[each] for each in sorted(self.fresh)), *self.ranges))

    def take(self, other: "Pieces") -> None:
        """Adds those of another response; its freshness of a partition replaces an older one."""
        self.results += other.results
        self.ranges += other.ranges
        self.fresh |= other.fresh
        self.news += other.news

    def fail_key(self, index: int, failure: LookupFailedError) -> None:
        result = query_pb2.KeyResult(index=index)
        fill_key_error(result.error, failure)
        self.results.append(sized(FIRST, result.SerializeToString()))
        self.news += 1

    def fail_range(self, index: int, failure: LookupFailedError) -> None:
        result = query_pb2.RangeResult(index=index)
        fill_key_error(result.error, failure)
        self.ranges.append(sized(THIRD, result.SerializeToString()))
        self.news += 1

    def fail(self, part: Part, failure: LookupFailedError) -> None:
        """Fails all keys and ranges of a part."""
        for index in part.key_indexes:
            self.fail_key(index, failure)
        for index in part.ranges:
            self.fail_range(index, failure)

    def join(self, answer: api.BatchGetStatesResponse, parts: Sequence[Part]) -> Sequence[Part]:
        """Adds the answer to `part_request` of these parts; returns those that have no freshness in it: they failed."""
        left = {part.partition: part for part in parts if len(parts) > 1}  # a part that fails alone has no answer
        keys = [index for part in parts for index in part.key_indexes]
        ranges = [index for part in parts for index in part.ranges]
        for freshness in answer.freshness:
            freshness.keys[:] = [keys[place] for place in freshness.keys]
            freshness.ranges[:] = [ranges[place] for place in freshness.ranges]
            self.fresh[freshness.partition] = sized(SECOND, freshness.SerializeToString())
            left.pop(freshness.partition, None)
        answer.ClearField("freshness")
        for result in answer.results:
            result.index = keys[result.index]
        for range_result in answer.ranges:
            range_result.index = ranges[range_result.index]
        if left:
            _drop(answer, list(left.values()))
        self.news += len(answer.results) + len(answer.ranges)
        self.results.append(answer.SerializeToString())
        return list(left.values())


def _drop(answer: api.BatchGetStatesResponse, parts: Sequence[Part]) -> None:
    """Removes the results of parts that failed."""
    keys = {index for part in parts for index in part.key_indexes}
    ranges = {index for part in parts for index in part.ranges}
    results = [result for result in answer.results if result.index not in keys]
    range_results = [result for result in answer.ranges if result.index not in ranges]
    kept = api.BatchGetStatesResponse(results=results, ranges=range_results)
    answer.CopyFrom(kept)


def split(request: api.BatchGetStatesRequest, view: View, pieces: Pieces) -> list[Part]:
    """Returns the parts of a batch by rising partition, without keys and ranges that are misplaced.

    These fail in `pieces`. Raises MalformedKeyError and InvalidRequestError for a key, else as View.topic does.
    """
    store, partition_of = request.store, view.partitioner_of(request.store)
    has_misplaced = store in view.misplaced
    keys = defaultdict[int, list[Asked]](list)
    ranges = defaultdict[int, list[int]](list)
    for index, query in enumerate(request.keys):
        key, after = query.key, query.after
        group, sort, member, offset = key.group, key.sort, key.member, after.offset
        if sort or member or not group or "\0" in group or offset < -1:  # the usual key, a group, costs no call
            check_key_query(query, index)
            encoded, stored_key = group.encode(), row_key(group, sort, member)
        else:
            encoded = stored_key = group.encode()
        if has_misplaced and (failure := view.misplacement(store, group)) is not None:
            pieces.fail_key(index, failure)
            continue
        keys[partition_of(encoded)].append((index, stored_key, after.epoch, offset))
    for index, range_query in enumerate(request.ranges):
        if has_misplaced and (failure := view.misplacement(store, range_query.group)) is not None:
            pieces.fail_range(index, failure)
            continue
        ranges[partition_of(range_query.group.encode())].append(index)
    return [Part(each, keys[each], ranges[each]) for each in sorted({*keys, *ranges})]


def part_request(
    request: api.BatchGetStatesRequest, parts: Sequence[Part], wait_s: float = 0.0
) -> api.BatchGetStatesRequest:
    """Returns the request for some parts of a batch, which waits so long."""
    part = api.BatchGetStatesRequest(store=request.store)
    keys, ranges = request.keys, request.ranges
    part.keys.extend([keys[asked[0]] for each in parts for asked in each.keys])
    part.ranges.extend([ranges[index] for each in parts for index in each.ranges])
    if request.HasField("bounds"):
        part.bounds.CopyFrom(request.bounds)
    if wait_s > 0:
        part.max_wait.FromNanoseconds(int(wait_s * 1e9))
    return part


def wait_s_of(request: api.BatchGetStatesRequest) -> float:
    """Returns for how many seconds a batch waits for news."""
    wait = request.max_wait
    return float(wait.seconds + wait.nanos / 1e9)


def is_in_memory(replica: Replica, request: api.BatchGetStatesRequest, part: Part) -> bool:
    """Returns whether the keys of a part are, as far as some of them tell, and which of its ranges have changed."""
    for index in part.ranges:
        query = request.ranges[index]
        if query.whole or not query.HasField("after") or not replica.changes.remembers(query.after.offset):
            return False
    return replica.is_at_hand([key for _, key, _, _ in part.keys[::_SAMPLED]])


def read_part(
    replica: Replica, request: api.BatchGetStatesRequest, part: Part, instance: str, limits: Limits, pieces: Pieces
) -> None:
    """Adds the news of a part, in any thread. Raises NotServedError; then nothing has been added."""
    freshness = replica.freshness(instance)  # before the values, so that it never claims more than was read
    read = Pieces(pieces.room)
    _read_keys(replica, part.keys, freshness, read)
    if part.ranges:
        reader = RangeReader(replica, freshness, limits, pieces.room)
        for index in part.ranges:
            left = pieces.room.left
            try:
                encoded = reader.read(request.ranges[index])
            except (InvalidRequestError, TooLargeError) as failure:
                read.fail_range(index, failure)
                pieces.room.left = left // 2  # for the others; ranges that are too large read twice the room in all
            else:
                if encoded is not None:
                    read.ranges.append(sized(THIRD, index_bytes(index) + encoded))
                    read.news += 1
    pieces.take(read)
    places = places_bytes(part.key_indexes, part.ranges)
    pieces.fresh[part.partition] = sized(SECOND, freshness_bytes(freshness) + places)


def _read_keys(replica: Replica, asked: Sequence[Asked], freshness: Freshness, pieces: Pieces) -> None:
    """Adds the results of keys that have news, and the failure of those that there is no room for."""
    for at in range(0, len(asked), _KEYS_AT_ONCE):
        if pieces.room.left < 0:
            for index, _, _, _ in asked[at:]:
                pieces.fail_key(index, TooLargeError())
            return
        results = _changed(replica, asked[at : at + _KEYS_AT_ONCE], freshness)
        pieces.room.left -= sum(map(len, results))
        pieces.results += results
        pieces.news += len(results)


def _changed(replica: Replica, asked: Sequence[Asked], freshness: Freshness) -> list[bytes]:
    """Returns the encoded results of keys that have news."""
    values = replica.read([key for _, key, _, _ in asked])
    purged_offset = replica.store.purged_offset  # after the values: see PartitionStore.purge_deletions
    epoch, encoded_epoch = freshness.epoch, epoch_bytes(freshness.epoch)
    results: list[bytes] = []
    add = results.append
    for (index, key, after_epoch, after_offset), value in zip(asked, values, strict=True):
        header = None if value is None else header_fields(value)
        if after_epoch == epoch and (purged_offset if header is None else header[2]) <= after_offset:
            continue
        if value is None or header is None or header[5] & DELETED:
            add(_absent(index, value, freshness, purged_offset))
            continue
        state = state_bytes(key, encoded_epoch, header, value)
        head = b"\x08" + varint(index) + SECOND + varint(len(state)) if index else SECOND + varint(len(state))
        add(b"".join((FIRST, varint(len(head) + len(state)), head, state)))
    return results


def _absent(index: int, value: bytes | None, freshness: Freshness, purged_offset: int) -> bytes:
    result = query_pb2.KeyResult(index=index, absence=absence_of(value, freshness, purged_offset))
    return sized(FIRST, result.SerializeToString())


async def look(
    parts: Sequence[Part],
    look_up: Callable[[Part, float], Coroutine[None, None, Pieces]],
    wait_s: float,
    left_s: Callable[[], float],
    pieces: Pieces,
) -> None:
    """Adds the pieces of all parts; `look_up` takes a part, and for how many seconds to wait for news there.

    With `wait_s`, all parts are looked at once first. Only when none has news are they asked to wait, while there is
    time left; the first with news ends the waiting of the others, which lose nothing: the caller asks them again.
    """
    several = len(parts) > 1 or pieces.news > 0
    for each in await asyncio.gather(*(look_up(part, 0.0 if several else wait_s) for part in parts)):
        pieces.take(each)
    wait_s = min(wait_s, left_s())
    if several and wait_s > 0 and not pieces.news:
        for each in await _until_any(look_up(part, wait_s) for part in parts):
            pieces.take(each)


async def _until_any(looks: Iterable[Coroutine[None, None, Pieces]]) -> list[Pieces]:
    tasks = [asyncio.ensure_future(look) for look in looks]
    try:
        for finished in asyncio.as_completed(tasks):
            if (await finished).news:
                await asyncio.wait(tasks, timeout=_GATHER_S)
                break
        return [task.result() for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def bytes_of(response: bytes | api.BatchGetStatesResponse) -> bytes:
    """Returns the response to a batch encoded."""
    return response if isinstance(response, bytes) else response.SerializeToString()


async def message_of(
    answer: bytes | Awaitable[bytes | api.BatchGetStatesResponse],
) -> api.BatchGetStatesResponse:
    """Returns the answer to a batch as a message, so that it can be joined with others."""
    response = answer if isinstance(answer, bytes) else await answer
    return api.BatchGetStatesResponse.FromString(response) if isinstance(response, bytes) else response


async def unblocking(keys: int, call: Callable[[], _Result]) -> _Result:
    """Calls a function on so many keys of a batch: in a thread when it would hold the event loop for long."""
    return call() if keys <= MAX_KEYS_AT_ONCE else await asyncio.to_thread(call)
