"""Lists which instances serve which partitions, and how fresh each of them is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.lookups.preference import Preference
from query_service.lookups.routed_peer import Held
from query_service.serving.messages import fill_freshness, fill_position
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard

_KEPT_S = 0.25


@dataclass(eq=False)
class ShardListing:
    """Answers ListShards from the shard map and what the peers have said last of themselves.

    A listing is made at most four times a second, however many ask for it.
    """

    view: View
    preference: Preference
    monotonic: Callable[[], float]
    _kept: dict[str, tuple[float, api.ListShardsResponse]] = field(default_factory=dict, init=False)

    def shards(self, store: str, known_version: bytes = b"") -> api.ListShardsResponse:
        """Returns one store, or all for an empty name; the version alone to who knows it.

        Stores whose topic the broker has not described yet are left out of the list of all. Raises UnknownStoreError;
        NotServedError without the store's topic, and outside of the group, where the map would be empty.
        """
        self.view.check_joined()
        made_at, listing = self._kept.get(store, (-_KEPT_S, None))
        now = self.monotonic()
        if listing is None or now - made_at >= _KEPT_S:
            listing = self._listing(store)
            self._kept[store] = now, listing
        return listing if listing.version != known_version else api.ListShardsResponse(version=known_version)

    def _listing(self, store: str) -> api.ListShardsResponse:
        stores = self.view.stores.values()
        names = [store] if store else [known.name for known in stores if known.topic in self.view.topics]
        response = api.ListShardsResponse(stores=[self._store(name) for name in names])
        version = blake2b(b"".join(message.SerializeToString(deterministic=True) for message in response.stores))
        own = self._own()
        for message in response.stores:
            for partition in range(message.partitions):
                shard_message = response.shards.add(store=message.store, partition=partition)
                self._fill_replicas(shard_message, own)
                version.update(repr([(each.address, each.serving) for each in shard_message.replicas]).encode())
        response.version = version.digest()[:8]
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

    def _fill_replicas(self, message: query_pb2.Shard, own: Held) -> None:
        place: StorePartition = (message.store, message.partition)
        holders = len(self.view.shard_map.holders(*place))
        for rank, member in enumerate(self.preference.order(place)[:holders], start=1):
            replica = message.replicas.add(instance=member.instance, address=member.address, rank=rank)
            held = own if member == self.view.me else self.preference.peer_of(member).held
            replica.serving, freshness = held.get(place, (False, None))
            replica.lag_records = replica.lag_ms = -1
            if freshness is not None:
                replica.lag_records, replica.lag_ms = freshness.lag_records, freshness.lag_ms
                fill_position(replica.current_through, Position(freshness.epoch, freshness.applied_offset))
