"""Lists which instances serve which partitions, and how fresh each of them is."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from query_service.cluster.misplaced import groups_of
from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.errors import LookupFailedError
from query_service.reads.messages import fill_freshness, fill_position
from query_service.reads.route import Preference
from query_service.reads.routed_peer import Held
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard

_KEPT_S = 0.25
_KEPT_TIMES = 50.0
_AT_ONCE = 100

_Listing = tuple[api.ListShardsResponse, float]
"""A listing, and until when it is kept."""


@dataclass(eq=False)
class ShardListing:
    """Answers ListShards from the shard map and the last answers of the peers.

    However many callers ask, a listing is made at most four times a second, and so seldom in a very large cluster that
    it takes 2 % of the time. Making it never holds the event loop for long.
    """

    view: View
    preference: Preference
    monotonic: Callable[[], float]
    _made: "dict[str, asyncio.Future[_Listing]]" = field(default_factory=dict, init=False)

    async def shards(self, store: str, known_version: bytes = b"") -> api.ListShardsResponse:
        """Returns one store, or all for an empty name; the version alone to a caller that knows it.

        A store is left out of the list of all until the broker has described its topic. Raises UnknownStoreError;
        NotServedError without the store's topic, and outside of the group, where the map would be empty.
        """
        self.view.check_joined()
        made = self._made.get(store)
        if made is None or (made.done() and self.monotonic() >= made.result()[1]):
            made = self._made[store] = asyncio.ensure_future(self._make(store))
        try:
            listing, _ = await asyncio.shield(made)
        except LookupFailedError:
            self._made.pop(store, None)
            raise
        return listing if listing.version != known_version else api.ListShardsResponse(version=known_version)

    async def _make(self, store: str) -> "_Listing":
        began = self.monotonic()
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
                if len(response.shards) % _AT_ONCE == 0:
                    await asyncio.sleep(0)
        response.version = version.digest()[:8]
        now = self.monotonic()
        return response, now + max(_KEPT_S, _KEPT_TIMES * (now - began))

    def own_partitions(self) -> shard.ListPartitionsResponse:
        response = shard.ListPartitionsResponse(instance=self.view.me.instance, replicas=self.view.shard_map.replicas)
        for place, (serving, freshness) in sorted(self._own().items()):
            groups = groups_of(self.view.replicas[place].store.misplaced)
            message = response.partitions.add(store=place[0], serving=serving, misplaced_groups=groups)
            fill_freshness(message.freshness, freshness)
        return response

    def _store(self, name: str) -> query_pb2.Store:
        definition, topic = self.view.store(name), self.view.topic(name)
        misplaced = self.view.misplaced.get(name)
        return query_pb2.Store(
            store=name,
            topic=topic.name,
            message=definition.message,
            partitions=topic.partitions,
            owner=definition.owner or "",
            history=definition.history is not None,
            partitioner=query_pb2.Partitioner.Value(f"PARTITIONER_{definition.partitioner.upper()}"),
            misplaced="" if misplaced is None else misplaced.reason,
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
