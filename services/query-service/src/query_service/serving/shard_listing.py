"""Lists which instances serve which partitions, and how fresh each of them is."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.serving.messages import fill_freshness, fill_position
from query_service.serving.peers import Held
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard


@dataclass(eq=False)
class ShardListing:
    """Answers ListShards from the shard map and, for lag, from all peers, which are asked at the same time."""

    view: View
    freshness_at: Callable[[Member], Awaitable[Held]]

    async def shards(self, store: str) -> api.ListShardsResponse:
        """Returns one store, or all for an empty name. Raises UnknownStoreError; NotServedError without its topic.

        Stores whose topic the broker has not described yet are left out of the list of all.
        """
        stores = self.view.stores.values()
        names = [store] if store else [known.name for known in stores if known.topic in self.view.topics]
        response = api.ListShardsResponse(stores=[self._store(name) for name in names])
        peers = sorted(self.view.shard_map.members - {self.view.me})
        answers = await asyncio.gather(*(self.freshness_at(peer) for peer in peers))
        held = {self.view.me: self._own(), **dict(zip(peers, answers, strict=True))}
        for message in response.stores:
            for partition in range(message.partitions):
                response.shards.append(self._shard(message.store, partition, held))
        return response

    def own_partitions(self) -> shard.ListPartitionsResponse:
        response = shard.ListPartitionsResponse()
        for (store, _), (serving, freshness) in sorted(self._own().items()):
            fill_freshness(response.partitions.add(store=store, serving=serving).freshness, freshness)
        return response

    def _store(self, name: str) -> query_pb2.Store:
        definition, topic = self.view.store(name), self.view.topic(name)
        return query_pb2.Store(
            store=name,
            topic=topic.name,
            message=definition.message,
            partitions=topic.partitions,
            owner=definition.owner or "",
            history=definition.history is not None,
            partitioner=query_pb2.Partitioner.Value(f"PARTITIONER_{definition.partitioner.upper()}"),
        )

    def _own(self) -> Held:
        instance = self.view.me.instance
        return {place: (each.progress.serving, each.freshness(instance)) for place, each in self.view.replicas.items()}

    def _shard(self, store: str, partition: int, held: Mapping[Member, Held]) -> query_pb2.Shard:
        message = query_pb2.Shard(store=store, partition=partition)
        for rank, member in enumerate(self.view.shard_map.holders(store, partition), start=1):
            replica = message.replicas.add(instance=member.instance, address=member.address, rank=rank)
            replica.serving, freshness = held[member].get((store, partition), (False, None))
            replica.lag_records = replica.lag_ms = -1
            if freshness is not None:
                replica.lag_records, replica.lag_ms = freshness.lag_records, freshness.lag_ms
                fill_position(replica.current_through, Position(freshness.epoch, freshness.applied_offset))
        return message
