"""Lists which instances serve which partitions, and how fresh each of them is."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.reads.messages import fill_position
from query_service.reads.route import Preference
from query_service.reads.routed_peer import Held
from query_service.storage.stores_file import StoreDefinition
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_KEPT_S = 0.25
_KEPT_TIMES = 50.0
_AT_ONCE = 100

_Listing = tuple[api.ListShardsResponse, float, tuple[object, ...]]
"""A listing, until when it is kept, and the parts of the view that it is made of."""


@dataclass(eq=False)
class ShardListing:
    """Answers ListShards from the shard map and the last answers of the peers.

    However many callers ask, a listing is made at most four times a second, and so seldom in a very large cluster that
    it takes 2 % of a processor. Other stores, topics or members make it anew at once. Making it never holds the event
    loop for long.
    """

    view: View
    preference: Preference
    monotonic: Callable[[], float]
    _made: "dict[str, asyncio.Future[_Listing]]" = field(default_factory=dict, init=False)

    async def shards(self, store: str, known_version: bytes = b"") -> api.ListShardsResponse:
        """Returns one store, or all for an empty name; the version alone to a caller that knows it.

        In the list of all, a store stands apart until the broker has described its topic. Raises UnknownStoreError;
        NotServedError without the store's topic, and outside of the group, where the map would be empty.
        """
        self.view.check_joined()
        if store:
            self.view.topic(store)
        made = self._made.get(store)
        if made is None or (made.done() and (made.exception() or self._is_outdated(*made.result()[1:]))):
            made = self._made[store] = asyncio.ensure_future(self._make(store))
        listing, _, _ = await asyncio.shield(made)
        return listing if listing.version != known_version else api.ListShardsResponse(version=known_version)

    def _is_outdated(self, kept_until: float, made_of: tuple[object, ...]) -> bool:
        return self.view.has_other(made_of) or self.monotonic() >= kept_until

    async def _make(self, store: str) -> "_Listing":
        made_of, taken_s, began = self.view.parts, 0.0, time.thread_time()
        all_stores = self.view.stores.values()
        names = [store] if store else [each.name for each in all_stores if each.topic in self.view.topics]
        response = api.ListShardsResponse(stores=[self._store(name) for name in names])
        if not store:
            response.without_topic.extend(listed(each) for each in all_stores if each.topic not in self.view.topics)
        version = blake2b(response.SerializeToString(deterministic=True))
        own = self._own()
        for message in response.stores:
            for partition in range(message.partitions):
                shard_message = response.shards.add(store=message.store, partition=partition)
                self._fill_replicas(shard_message, own)
                version.update(repr([(each.address, each.serving) for each in shard_message.replicas]).encode())
                if len(response.shards) % _AT_ONCE == 0:
                    taken_s += time.thread_time() - began
                    await asyncio.sleep(0)
                    began = time.thread_time()
        response.version = version.digest()[:8]
        taken_s += time.thread_time() - began
        return response, self.monotonic() + max(_KEPT_S, _KEPT_TIMES * taken_s), made_of

    def _store(self, name: str) -> query_pb2.Store:
        misplaced = self.view.misplaced.get(name)
        message = listed(self.view.store(name))
        message.partitions = self.view.topic(name).partitions
        message.misplaced = "" if misplaced is None else misplaced.reason
        return message

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


def listed(store: StoreDefinition) -> query_pb2.Store:
    """Returns a store as ListShards lists it, without the facts that the broker and the rows decide."""
    readers = store.readers if isinstance(store.readers, str) else "owner"
    return query_pb2.Store(
        store=store.name,
        topic=store.topic,
        message=store.message,
        history=store.history is not None,
        partitioner=query_pb2.Partitioner.Value(f"PARTITIONER_{store.partitioner.upper()}"),
        readers=query_pb2.Readers.Value(f"READERS_{readers.upper()}"),
        owner=store.owner or "",
        group_is_owner=store.group_is_owner,
        private_fields=[query_pb2.PrivateField(path=each.path.split("."), owner=each.owner) for each in store.private],
        members=store.keeps == "members",
        description=store.description or "",
        interval_ms=store.interval_ms or 0,
    )
