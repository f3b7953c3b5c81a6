"""Answers the usual get from bytes to bytes, at once on the event loop: without a task, a race or a message built."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from google.protobuf.message import DecodeError

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.errors import NotServedError
from query_service.lookups.preference import Preference
from query_service.metrics import MethodCalls
from query_service.serving.call_limits import MIN_CALL_BYTES, InFlight
from query_service.serving.forwarded_gets import ForwardedGets
from query_service.serving.wire import FIRST, SECOND, epoch_bytes, freshness_bytes, sized, state_bytes
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER, row_key
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
        """Returns a function from group to partition; None without a topic, and while keys are known as misplaced."""
        definition = self.view.stores.get(store)
        topic = None if definition is None else self.view.topics.get(definition.topic)
        if definition is None or topic is None or store in self.view.misplaced:
            return None
        hash_group, partitions = PARTITIONERS[definition.partitioner], topic.partitions
        return lambda group: hash_group(group) % partitions

    def serving(self, place: StorePartition) -> Replica | None:
        """Returns the replica; None when there is none here, or when it is not the one to be asked."""
        replica = self.view.replicas.get(place)
        if replica is None or not replica.progress.serving:
            return None
        if self.preference is not None and not self.preference.begins_here(place, replica.progress.lag_s):
            return None
        return replica


@dataclass(eq=False)
class FastGets:
    """Answers a `GetState` without bounds and `as_of` while there is memory for it.

    A key that has a value here is answered at once; one that a peer is to answer is passed on, where there are
    `forwards`.
    """

    replicas: OwnReplicas
    in_flight: InFlight
    forwards: ForwardedGets | None = None

    def get(
        self, request: api.GetStateRequest, size: int, left_s: float | None = None
    ) -> "bytes | asyncio.Future[bytes | None] | None":
        """Returns the encoded GetStateResponse to a request of this size; None when the servicer must answer."""
        key = request.key
        group, sort, member = key.group, key.sort, key.member
        if not group or "\0" in group or request.HasField("bounds") or request.HasField("as_of"):
            return None
        if (sort or member) and not are_parts(sort, member):
            return None
        partition_of = self.replicas.partitions_of(request.store)
        if partition_of is None:
            return None
        place = request.store, partition_of(group)
        replica = self.replicas.serving(place)
        if replica is None:
            holder = None if self.forwards is None else self.forwards.get(place, request, size, left_s)
            if not isinstance(holder, Replica):
                return holder
            replica = holder
        freshness = replica.freshness(self.replicas.view.me.instance)  # before the value: see LocalLookup
        stored_key = row_key(group, sort, member)
        try:
            value = replica.read([stored_key])[0]
        except NotServedError:
            return None
        if value is None or value[FLAGS_AT] & DELETED:
            return None
        state = state_bytes(stored_key, epoch_bytes(freshness.epoch), HEADER.unpack_from(value), value)
        response = sized(FIRST, state) + sized(SECOND, freshness_bytes(freshness))
        return response if self.in_flight.has_room(size + MIN_CALL_BYTES + len(response)) else None


def are_parts(sort: str, member: str) -> bool:
    """Whether both can be parts of one key beside a group, which `request_checks` checks alike."""
    return bool(sort and member and "\0" not in sort and "\0" not in member)


@dataclass(eq=False)
class PublicGets:
    """The fast answers of `QueryService.GetState`."""

    gets: FastGets
    calls: MethodCalls

    def answer(self, request: bytes, left_s: float | None) -> "bytes | asyncio.Future[bytes | None] | None":
        """Answers as a FastAnswer does, and counts its answers."""
        began = perf_counter()
        try:
            response = self.gets.get(api.GetStateRequest.FromString(request), len(request), left_s)
        except DecodeError:
            return None
        if isinstance(response, bytes):
            self.calls.ended("ok", perf_counter() - began)
        return response


@dataclass(eq=False)
class ShardGets:
    """The fast answers of `ShardService.GetState`, which wraps both messages of the public call."""

    gets: FastGets

    def answer(self, request: bytes, _left_s: float | None) -> bytes | None:
        """Answers as a FastAnswer does."""
        try:
            response = self.gets.get(shard.GetStateRequest.FromString(request).query, len(request))
        except DecodeError:
            return None
        return sized(FIRST, response) if isinstance(response, bytes) else None
