"""Answers the usual get from bytes to bytes, at once on the event loop: without a task, a race or a message built."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from google.protobuf.message import DecodeError

from query_service.cluster.view import View
from query_service.errors import NotServedError
from query_service.lookups.preference import Preference
from query_service.metrics import MethodCalls
from query_service.serving.call_limits import MIN_CALL_BYTES, InFlight
from query_service.serving.wire import FIRST, SECOND, freshness_bytes, sized, state_bytes
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, row_key
from statecast.partitioning import PARTITIONERS
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard


@dataclass(eq=False)
class OwnReplicas:
    """Finds the replica of this instance that is to answer for a partition.

    With `preference`, as callers of any instance need it, only if it is the one that is asked first; without, as peers
    ask, in any case.
    """

    view: View
    preference: Preference | None = None

    def partitions_of(self, store: str) -> Callable[[str], int] | None:
        """Returns what gives the partition of a group; None for an unknown store or topic."""
        definition = self.view.stores.get(store)
        topic = None if definition is None else self.view.topics.get(definition.topic)
        if definition is None or topic is None:
            return None
        hash_group, partitions = PARTITIONERS[definition.partitioner], topic.partitions
        return lambda group: hash_group(group) % partitions

    def serving(self, store: str, partition: int) -> Replica | None:
        """Returns the replica; None when there is none here, or when it is not the one to be asked."""
        shard = store, partition
        replica = self.view.replicas.get(shard)
        if replica is None or not replica.progress.serving:
            return None
        if self.preference is not None and not self.preference.begins_here(shard, replica.progress.lag_s):
            return None
        return replica


@dataclass(eq=False)
class FastGets:
    """Answers a `GetState` whose key has a value here, without bounds and `as_of`, while there is memory for it."""

    replicas: OwnReplicas
    in_flight: InFlight

    def get(self, request: api.GetStateRequest, size: int) -> bytes | None:
        """Returns the encoded GetStateResponse to a request of this size; None when the servicer must answer."""
        key = request.key
        group, sort, member = key.group, key.sort, key.member
        if not group or "\0" in group or request.HasField("bounds") or request.HasField("as_of"):
            return None
        if (sort or member) and not (sort and member and "\0" not in sort and "\0" not in member):
            return None
        partition_of = self.replicas.partitions_of(request.store)
        replica = None if partition_of is None else self.replicas.serving(request.store, partition_of(group))
        if replica is None:
            return None
        freshness = replica.freshness(self.replicas.view.me.instance)  # before the value: see LocalLookup
        stored_key = row_key(group, sort, member)
        try:
            value = replica.read([stored_key])[0]
        except NotServedError:
            return None
        if value is None or value[FLAGS_AT] & DELETED:
            return None
        state = state_bytes(stored_key, freshness.epoch, value)
        response = sized(FIRST, state) + sized(SECOND, freshness_bytes(freshness))
        return response if self.in_flight.has_room(size + MIN_CALL_BYTES + len(response)) else None


@dataclass(eq=False)
class PublicGets:
    """The fast answers of `QueryService.GetState`."""

    gets: FastGets
    calls: MethodCalls

    def answer(self, request: bytes) -> bytes | None:
        """Answers as a FastAnswer does, and counts what it answers."""
        began = perf_counter()
        try:
            response = self.gets.get(api.GetStateRequest.FromString(request), len(request))
        except DecodeError:
            return None
        if response is not None:
            self.calls.ended("ok", perf_counter() - began)
        return response


@dataclass(eq=False)
class ShardGets:
    """The fast answers of `ShardService.GetState`, which wraps both messages of the public call."""

    gets: FastGets

    def answer(self, request: bytes) -> bytes | None:
        """Answers as a FastAnswer does."""
        try:
            response = self.gets.get(shard.GetStateRequest.FromString(request).query, len(request))
        except DecodeError:
            return None
        return None if response is None else sized(FIRST, response)
