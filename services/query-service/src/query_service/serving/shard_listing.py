"""Lists who serves what, and how fresh each of them is."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.shard.v1 import shard_service_pb2 as shard

_PARTITIONERS = {
    "murmur2": query_pb2.PARTITIONER_MURMUR2,
    "crc32": query_pb2.PARTITIONER_CRC32,
}

Held = Mapping[tuple[str, int], tuple[bool, query_pb2.Freshness]]


class AskedPeers(Protocol):
    """The other members; see Peers."""

    async def freshness_at(self, member: Member, timeout_s: float) -> Held:
        """See Peers."""


class ShardListing:
    """Answers ListShards from the shard map and, for lag, from every member that holds something."""

    def __init__(self, view: View, peers: AskedPeers, peer_timeout_s: float) -> None:
        """Gives all peers together `peer_timeout_s`."""
        self._view = view
        self._peers = peers
        self._peer_timeout_s = peer_timeout_s

    async def shards(self, store: str) -> query.ListShardsResponse:
        """Returns one store, or all for an empty name. Raises UnknownStoreError; NotServedError without its topic.

        Stores whose topic is not known yet are left out of the list of all.
        """
        names = [store] if store else [name for name in self._view.stores if self._known(name)]
        answer = query.ListShardsResponse(stores=[self._store(name) for name in names])
        members = sorted(self._view.shard_map.members)
        held = dict(zip(members, await asyncio.gather(*map(self._held_by, members)), strict=True))
        for each in answer.stores:
            for partition in range(each.partitions):
                answer.shards.append(self._shard(each.store, partition, held))
        return answer

    def own_partitions(self) -> shard.ListPartitionsResponse:
        """Returns what this instance holds, by store and partition."""
        answer = shard.ListPartitionsResponse()
        for (store, _), (serving, freshness) in sorted(self._own().items()):
            answer.partitions.add(store=store, freshness=freshness, serving=serving)
        return answer

    def _known(self, store: str) -> bool:
        return self._view.store(store).topic in self._view.topics

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
        return {place: (host.progress.serving, host.freshness(instance)) for place, host in self._view.hosts.items()}

    async def _held_by(self, member: Member) -> Held:
        if member == self._view.me:
            return self._own()
        return await self._peers.freshness_at(member, self._peer_timeout_s)

    def _shard(self, store: str, partition: int, held: Mapping[Member, Held]) -> query_pb2.Shard:
        answer = query_pb2.Shard(store=store, partition=partition)
        for rank, member in enumerate(self._view.shard_map.holders(store, partition), start=1):
            replica = answer.replicas.add(instance=member.instance, address=member.address, rank=rank)
            found = held[member].get((store, partition))
            if found is None:
                replica.lag_records = replica.lag_ms = -1
                continue
            serving, freshness = found
            replica.serving = serving
            replica.lag_records = freshness.lag_records
            replica.lag_ms = freshness.lag_ms
            replica.current_through.CopyFrom(freshness.current_through)
        return answer
