"""Answers a batch of keys that all lie here from bytes to bytes, at once on the event loop; see `fast_gets`."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from google.protobuf.message import DecodeError

from query_service.errors import NotServedError
from query_service.lookups.local_lookup import MAX_KEYS_AT_ONCE
from query_service.lookups.replica_reads import absence_of
from query_service.metrics import Metrics
from query_service.serving.call_limits import MIN_CALL_BYTES, QUERY_BYTES, InFlight
from query_service.serving.fast_gets import OwnReplicas
from query_service.serving.messages import fill_absence
from query_service.serving.wire import FIRST, SECOND, freshness_bytes, places_bytes, sized, state_bytes, varint
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, offset_of, row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard

_Asked = tuple[int, bytes, int, int]
"""Index in the batch, key in the store, and epoch and offset that the caller has."""


@dataclass(eq=False)
class FastBatches:
    """Answers a `BatchGetStates` of keys that all lie here, without ranges, bounds and `max_wait`.

    It answers at most MAX_KEYS_AT_ONCE keys. A response of more than `max_response_bytes` is left to the servicer.
    """

    replicas: OwnReplicas
    in_flight: InFlight
    max_keys: int
    max_response_bytes: float

    def batch(self, request: api.BatchGetStatesRequest, size: int) -> tuple[bytes, int] | None:
        """Returns the encoded BatchGetStatesResponse to a request of this size, and how many keys have news.

        None when the servicer must answer.
        """
        number = len(request.keys)
        if not 0 < number <= min(self.max_keys, MAX_KEYS_AT_ONCE) or request.ranges:
            return None
        if request.HasField("bounds") or request.HasField("max_wait"):
            return None
        needed = size + MIN_CALL_BYTES + number * QUERY_BYTES
        asked = self._asked(request) if self.in_flight.has_room(needed) else None
        if asked is None:
            return None
        results: list[bytes] = []
        fresh: list[bytes] = []
        try:
            for replica, keys in asked:
                fresh.append(sized(SECOND, self._look_up(replica, keys, results)))
        except NotServedError:
            return None
        response = b"".join((*results, *fresh))
        if len(response) > self.max_response_bytes or not self.in_flight.has_room(needed + len(response)):
            return None
        return response, len(results)

    def _asked(self, request: api.BatchGetStatesRequest) -> Sequence[tuple[Replica, list[_Asked]]] | None:
        """Returns what each replica is to look up, by rising partition; None when another one must be asked."""
        store, partition_of = request.store, self.replicas.partitions_of(request.store)
        if partition_of is None:
            return None
        by_partition: dict[int, list[_Asked]] = {}
        for index, query in enumerate(request.keys):
            key, after = query.key, query.after
            group, sort, member, offset = key.group, key.sort, key.member, after.offset
            if not group or "\0" in group or offset < -1:
                return None
            if (sort or member) and not (sort and member and "\0" not in sort and "\0" not in member):
                return None
            asked = index, row_key(group, sort, member), after.epoch, offset
            partition = partition_of(group)
            if partition in by_partition:
                by_partition[partition].append(asked)
            else:
                by_partition[partition] = [asked]
        parts: list[tuple[Replica, list[_Asked]]] = []
        for partition in sorted(by_partition):
            replica = self.replicas.serving(store, partition)
            if replica is None:
                return None
            parts.append((replica, by_partition[partition]))
        return parts

    def _look_up(self, replica: Replica, asked: list[_Asked], results: list[bytes]) -> bytes:
        """Adds the results that have news, and returns the encoded Freshness. Raises NotServedError."""
        freshness = replica.freshness(self.replicas.view.me.instance)  # before the values: see LocalLookup
        values = replica.read([key for _, key, _, _ in asked])
        purged_offset = replica.store.purged_offset  # after the values: see PartitionStore.purge_deletions
        epoch = freshness.epoch
        for (index, key, after_epoch, after_offset), value in zip(asked, values, strict=True):
            if after_epoch == epoch and (purged_offset if value is None else offset_of(value)) <= after_offset:
                continue
            if value is None or value[FLAGS_AT] & DELETED:
                results.append(_absent(index, value, freshness, purged_offset))
                continue
            state = state_bytes(key, epoch, value)
            place = b"\x08" + varint(index) if index else b""
            result = b"".join((place, SECOND, varint(len(state)), state))
            results.append(FIRST + varint(len(result)) + result)
        return freshness_bytes(freshness) + places_bytes([index for index, _, _, _ in asked])


def _absent(index: int, value: bytes | None, freshness: Freshness, purged_offset: int) -> bytes:
    result = query_pb2.KeyResult(index=index)
    fill_absence(result.absence, absence_of(value, freshness, purged_offset))
    return sized(FIRST, result.SerializeToString())


@dataclass(eq=False)
class PublicBatches:
    """The fast answers of `QueryService.BatchGetStates`."""

    batches: FastBatches
    metrics: Metrics

    def answer(self, request: bytes) -> bytes | None:
        """Answers as a FastAnswer does, and counts what it answers."""
        began = perf_counter()
        try:
            message = api.BatchGetStatesRequest.FromString(request)
        except DecodeError:
            return None
        answered = self.batches.batch(message, len(request))
        if answered is None:
            return None
        response, news = answered
        self.metrics.batch_keys.inc(len(message.keys))
        self.metrics.batch_results.inc(news)
        self.metrics.calls.of("BatchGetStates").ended("ok", perf_counter() - began)
        return response


@dataclass(eq=False)
class ShardBatches:
    """The fast answers of `ShardService.BatchGetStates`, which wraps both messages of the public call."""

    batches: FastBatches

    def answer(self, request: bytes) -> bytes | None:
        """Answers as a FastAnswer does."""
        try:
            message = shard.BatchGetStatesRequest.FromString(request)
        except DecodeError:
            return None
        answered = self.batches.batch(message.query, len(request))
        return None if answered is None else sized(FIRST, answered[0])
