"""Answers a batch of keys that all lie here from bytes to bytes, at once on the event loop; see `fast_gets`."""

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeAlias

from google.protobuf.message import DecodeError

from query_service.cluster.shard_map import StorePartition
from query_service.errors import NotServedError
from query_service.lookups.local_lookup import MAX_KEYS_AT_ONCE
from query_service.lookups.replica_reads import absence_of
from query_service.metrics import Metrics
from query_service.serving.call_limits import MIN_CALL_BYTES, QUERY_BYTES, InFlight, cap, response_limit
from query_service.serving.fast_gets import OwnReplicas, are_parts
from query_service.serving.forwards import Forwards, Route, hold
from query_service.serving.messages import fill_absence
from query_service.serving.wire import (
    FIRST,
    SECOND,
    epoch_bytes,
    freshness_bytes,
    places_bytes,
    sized,
    state_bytes,
    varint,
)
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, HEADER, row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard

_header_of = HEADER.unpack_from  # plain, for speed: its fields are those of store_keys.Header

_Asked = tuple[int, bytes, int, int]
"""Index in the batch, key in the store, and epoch and offset that the caller has."""


class Answered(NamedTuple):
    """An encoded BatchGetStatesResponse, and how many keys have news in it."""

    response: bytes
    news: int


_FromPeers: TypeAlias = Callable[[], Coroutine[None, None, Answered | None]]


class _Parts(NamedTuple):
    """Where the keys of a batch are looked up: in replicas, by rising partition, and at peers, by index."""

    here: list[tuple[Replica, list[_Asked]]]
    elsewhere: dict[Route, list[int]]


@dataclass(eq=False)
class FastBatches:
    """Answers a `BatchGetStates` without ranges, bounds and `max_wait`.

    Keys that lie here are looked up at once; the others are passed on, where there are `forwards`. It answers at most
    MAX_KEYS_AT_ONCE keys. A response that is larger than the caller takes, or than `max_response_bytes`, is left to the
    servicer, or, once peers have answered, capped as the servicer does; None has no limit, as peers take any.
    """

    replicas: OwnReplicas
    in_flight: InFlight
    max_keys: int
    max_response_bytes: int | None
    forwards: Forwards | None = None

    def batch(
        self, request: api.BatchGetStatesRequest, size: int, left_s: float | None = None
    ) -> Answered | _FromPeers | None:
        """Returns the response to a request of this size, or the function that asks the peers that have a part of it.

        None, at once or from the peers, when the servicer must answer.
        """
        if not 0 < len(request.keys) <= min(self.max_keys, MAX_KEYS_AT_ONCE) or request.ranges:
            return None
        if request.HasField("bounds") or request.HasField("max_wait"):
            return None
        needed = _needed(request, size)
        patience_s = math.inf if self.forwards is None else self.forwards.patience_s(left_s)
        parts = self._parts(request) if patience_s > 0 and self.in_flight.has_room(needed) else None
        if parts is None:
            return None
        if self.forwards is not None and parts.elsewhere:
            return partial(self._with_peers, self.forwards, request, parts, patience_s)
        results, fresh = self._look_up_all(parts.here)
        response = b"".join((*results, *fresh.values()))
        if len(fresh) < len(parts.here) or len(response) > self._limit(request):
            return None
        return Answered(response, len(results)) if self.in_flight.has_room(needed + len(response)) else None

    async def _with_peers(
        self, forwards: Forwards, request: api.BatchGetStatesRequest, parts: _Parts, patience_s: float
    ) -> Answered | None:
        """Looks up the keys that lie here while the peers look up the rest."""
        calls: list[asyncio.Task[api.BatchGetStatesResponse | None]] = []
        for route, indexes in parts.elsewhere.items():
            part = shard.BatchGetStatesRequest()
            part.query.store = request.store
            part.query.keys.extend([request.keys[index] for index in indexes])
            calls.append(asyncio.create_task(forwards.batch("batch", route, part, patience_s)))
        try:
            await asyncio.sleep(0)  # so that the calls are on their way
            results, fresh = self._look_up_all(parts.here)
            if len(fresh) < len(parts.here):
                return None
            answers = await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()
        news = len(results)
        for answer, indexes in zip(answers, parts.elsewhere.values(), strict=True):
            if answer is None or sum(len(freshness.keys) for freshness in answer.freshness) < len(indexes):
                return None
            news += len(answer.results)
            encoded, its_fresh = _placed(answer, indexes)
            results.append(encoded)
            fresh |= its_fresh
        response = b"".join((*results, *(fresh[partition] for partition in sorted(fresh))))
        if len(response) > (limit := self._limit(request)):
            message = api.BatchGetStatesResponse.FromString(response)
            cap(message, int(limit))
            response = message.SerializeToString()
        self.in_flight.check_room(len(response))
        return Answered(response, news)

    def _limit(self, request: api.BatchGetStatesRequest) -> float:
        return math.inf if self.max_response_bytes is None else response_limit(request, self.max_response_bytes)

    def _look_up_all(self, parts: Sequence[tuple[Replica, list[_Asked]]]) -> tuple[list[bytes], dict[int, bytes]]:
        """Returns the encoded results, and freshness by partition, up to the first replica that cannot be read."""
        results: list[bytes] = []
        fresh: dict[int, bytes] = {}
        for replica, keys in parts:
            try:
                fresh[replica.partition] = sized(SECOND, self._look_up(replica, keys, results))
            except NotServedError:
                break
        return results, fresh

    def _parts(self, request: api.BatchGetStatesRequest) -> _Parts | None:
        """Returns who is to look up which keys; None when the servicer has to find that out."""
        store, partition_of = request.store, self.replicas.partitions_of(request.store)
        if partition_of is None:
            return None
        by_partition = defaultdict[int, list[_Asked]](list)
        for index, query in enumerate(request.keys):
            key, after = query.key, query.after
            group, sort, member, offset = key.group, key.sort, key.member, after.offset
            if not group or "\0" in group or offset < -1 or ((sort or member) and not are_parts(sort, member)):
                return None
            by_partition[partition_of(group)].append((index, row_key(group, sort, member), after.epoch, offset))
        parts = _Parts([], {})
        for partition in sorted(by_partition):
            asked, holder = by_partition[partition], self._holder((store, partition))
            if holder is None:
                return None
            if isinstance(holder, Route):
                parts.elsewhere.setdefault(holder, []).extend(index for index, *_ in asked)
            else:
                parts.here.append((holder, asked))
        return parts

    def _holder(self, place: StorePartition) -> Replica | Route | None:
        replica = self.replicas.serving(place)
        if replica is None and self.forwards is not None:
            return self.forwards.route(place)
        return replica

    def _look_up(self, replica: Replica, asked: list[_Asked], results: list[bytes]) -> bytes:
        """Adds the results that have news, and returns the encoded Freshness. Raises NotServedError."""
        freshness = replica.freshness(self.replicas.view.me.instance)  # before the values: see LocalLookup
        values = replica.read([key for _, key, _, _ in asked])
        purged_offset = replica.store.purged_offset  # after the values: see PartitionStore.purge_deletions
        epoch, encoded_epoch = freshness.epoch, epoch_bytes(freshness.epoch)
        for (index, key, after_epoch, after_offset), value in zip(asked, values, strict=True):
            header = None if value is None else _header_of(value)
            if after_epoch == epoch and (purged_offset if header is None else header[2]) <= after_offset:
                continue
            if value is None or header is None or header[5] & DELETED:
                results.append(_absent(index, value, freshness, purged_offset))
                continue
            state = state_bytes(key, encoded_epoch, header, value)
            head = b"\x08" + varint(index) + SECOND + varint(len(state)) if index else SECOND + varint(len(state))
            results.append(b"".join((FIRST, varint(len(head) + len(state)), head, state)))
        return freshness_bytes(freshness) + places_bytes([index for index, _, _, _ in asked])


def _needed(request: api.BatchGetStatesRequest, size: int) -> int:
    """Returns the bytes that the work on a request of this size takes."""
    return size + MIN_CALL_BYTES + len(request.keys) * QUERY_BYTES


def _placed(answer: api.BatchGetStatesResponse, indexes: Sequence[int]) -> tuple[bytes, dict[int, bytes]]:
    """Returns the encoded results of a peer, and its freshness by partition, with the places in the whole batch."""
    fresh: dict[int, bytes] = {}
    for freshness in answer.freshness:
        freshness.keys[:] = [indexes[place] for place in freshness.keys]
        fresh[freshness.partition] = sized(SECOND, freshness.SerializeToString())
    answer.ClearField("freshness")
    for result in answer.results:
        result.index = indexes[result.index]
    return answer.SerializeToString(), fresh


def _absent(index: int, value: bytes | None, freshness: Freshness, purged_offset: int) -> bytes:
    result = query_pb2.KeyResult(index=index)
    fill_absence(result.absence, absence_of(value, freshness, purged_offset))
    return sized(FIRST, result.SerializeToString())


@dataclass(eq=False)
class PublicBatches:
    """The fast answers of `QueryService.BatchGetStates`."""

    batches: FastBatches
    metrics: Metrics

    def answer(self, request: bytes, left_s: float | None) -> "bytes | asyncio.Future[bytes | None] | None":
        """Answers as a FastAnswer does, and counts its answers."""
        began, calls = perf_counter(), self.metrics.calls.of("BatchGetStates")
        try:
            message = api.BatchGetStatesRequest.FromString(request)
        except DecodeError:
            return None
        answered = self.batches.batch(message, len(request), left_s)
        if answered is None:
            return None
        if isinstance(answered, Answered):
            calls.ended("ok", perf_counter() - began)
            return self._counted(message, answered)
        forwarded = asyncio.create_task(self._forwarded(message, answered))
        hold(forwarded, self.batches.in_flight, _needed(message, len(request)), calls)
        return forwarded

    async def _forwarded(self, request: api.BatchGetStatesRequest, from_peers: _FromPeers) -> bytes | None:
        answered = await from_peers()
        return None if answered is None else self._counted(request, answered)

    def _counted(self, request: api.BatchGetStatesRequest, answered: Answered) -> bytes:
        self.metrics.batch_keys.inc(len(request.keys))
        self.metrics.batch_results.inc(answered.news)
        return answered.response


@dataclass(eq=False)
class ShardBatches:
    """The fast answers of `ShardService.BatchGetStates`, which wraps both messages of the public call."""

    batches: FastBatches

    def answer(self, request: bytes, _left_s: float | None) -> bytes | None:
        """Answers as a FastAnswer does."""
        try:
            message = shard.BatchGetStatesRequest.FromString(request)
        except DecodeError:
            return None
        answered = self.batches.batch(message.query, len(request))
        return sized(FIRST, answered.response) if isinstance(answered, Answered) else None
