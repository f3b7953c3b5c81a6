"""Lists which instances serve which partitions, and how fresh each of them is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.freshness import Freshness
from query_service.serving.messages import fill_freshness, fill_position
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.shard.v1 import shard_service_pb2 as shard

_PARTITIONERS = {"murmur2": query_pb2.PARTITIONER_MURMUR2, "crc32": query_pb2.PARTITIONER_CRC32}

Held = Mapping[tuple[str, int], tuple[bool, Freshness]]
FreshnessAt = Callable[[Member, float], Awaitable[Held]]


class ShardListing:
    """Answers ListShards from the shard map and, for lag, from every member that holds something."""

    def __init__(self, view: View, freshness_at: FreshnessAt, peer_timeout_s: float) -> None:
        """Gives all peers together `peer_timeout_s`; `freshness_at` is that of Peers."""
        self._view = view
        self._freshness_at = freshness_at
        self._peer_timeout_s = peer_timeout_s

    async def shards(self, store: str) -> query.ListShardsResponse:
        """Returns one store, or all for an empty name. Raises UnknownStoreError; NotServedError without its topic.

        Stores whose topic the broker has not described yet are left out of the list of all.
        """
        stores = self._view.stores.values()
        names = [store] if store else [known.name for known in stores if known.topic in self._view.topics]
        response = query.ListShardsResponse(stores=[self._store(name) for name in names])
        members = sorted(self._view.shard_map.members)
        held = dict(zip(members, await asyncio.gather(*map(self._held_by, members)), strict=True))
        for message in response.stores:
            for partition in range(message.partitions):
                response.shards.append(self._shard(message.store, partition, held))
        return response

    def own_partitions(self) -> shard.ListPartitionsResponse:
        """Returns what this instance holds, by store and partition."""
        response = shard.ListPartitionsResponse()
        for (store, _), (serving, freshness) in sorted(self._own().items()):
            fill_freshness(response.partitions.add(store=store, serving=serving).freshness, freshness)
        return response

    def _store(self, name: str) -> query_pb2.Store:
        definition, topic = self._view.store(name), self._view.topic(name)
        return query_pb2.Store(
            store=name,
            topic=topic.name,
            message=definition.message,
            partitions=topic.partitions,
            owner=definition.owner or "",
            history=definition.history is not None,
            partitioner=_PARTITIONERS[definition.partitioner],
        )

    def _own(self) -> Held:
        instance = self._view.me.instance
        return {place: (host.progress.serving, host.freshness(instance)) for place, host in self._view.replicas.items()}

    async def _held_by(self, member: Member) -> Held:
        if member == self._view.me:
            return self._own()
        return await self._freshness_at(member, self._peer_timeout_s)

    def _shard(self, store: str, partition: int, held: Mapping[Member, Held]) -> query_pb2.Shard:
        message = query_pb2.Shard(store=store, partition=partition)
        for rank, member in enumerate(self._view.shard_map.holders(store, partition), start=1):
            replica = message.replicas.add(instance=member.instance, address=member.address, rank=rank)
            replica.serving, freshness = held[member].get((store, partition), (False, None))
            if freshness is None:
                replica.lag_records = replica.lag_ms = -1
                continue
            replica.lag_records = freshness.lag_records
            replica.lag_ms = freshness.lag_ms
            fill_position(replica.current_through, Position(freshness.epoch, freshness.applied_offset))
        return message
