"""An instance's stores and methods in one process."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.reads.route import Preference
from query_service.reads.routed import RoutedReads
from query_service.reads.routed_peer import RoutedPeer
from query_service.server.limits import CallLimits, InFlight
from query_service.server.methods import Method, QueryMethods, ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.shard_listing import ShardListing
from query_service.storage.changes import Changes
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.engine import MemoryEngine
from query_service.storage.progress import Progress
from query_service.storage.replica import Replica
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition
from testkit.query_service import (
    FakePeers,
    FakeReads,
    FakeRecord,
    ManualClock,
    preference_of,
    put,
    store_definition,
    tombstone,
)

PARTITIONS = 3
ME = Member("query-1", "h:1", "s:1", 1)
PEER = Member("query-2", "h:2", "s:2", 1)
STORES = (
    store_definition("keyed"),
    store_definition("other", topic="others", message="json", format="plain", partitioner="crc32"),
    store_definition("retained", topic="retaineds", message="json", format="plain", retain="1m"),
)


class ServedStores:
    """Three stores of three partitions in memory, which this instance and a peer hold; clocks that tests move."""

    def __init__(
        self,
        epoch: int = 77,
        in_flight_bytes: int = 1 << 30,
        response_bytes: int = 1 << 24,
        *,
        me: Member = ME,
        peer: Member = PEER,
    ) -> None:
        """All partitions are empty and served. Needs a running event loop."""
        self.clock, self.wall = ManualClock(), ManualClock(1_700_000_000.0)
        self.metrics = Metrics(CollectorRegistry())
        view = self.view = View(me, STORES, replicas=2)
        view.shard_map = ShardMap(frozenset({me, peer}), 2)
        view.topics = {store.topic: Topic(store.topic, "id", epoch, PARTITIONS) for store in STORES}
        for definition in STORES:
            for partition in range(PARTITIONS):
                view.replicas[definition.name, partition] = self._replica(definition, partition)
        self.in_flight = InFlight(in_flight_bytes, self.metrics)
        self.limits = Limits(1000, 100, 2, 10_000, response_bytes)
        self.call_limits = CallLimits(self.in_flight, 5.0, 60.0, self.clock)
        self.local = LocalReads(view, self.limits, self.clock)
        checkpoints = self.checkpoints = Checkpoints(Path("unused"), 0, self.metrics, self.clock)
        self.peers = FakePeers({peer: FakeReads(peer.instance, forwarded=True)}, self.clock)
        hedging = Hedging(0.0, 5.0, 0.1, self.metrics, self.clock)
        self.route(self.peers.of, hedging, 5.0, self.clock)
        # Stores in memory have no checkpoints.
        listing, pace = PartitionListing(view), Pace(1e9, self.clock)
        shards = ShardMethods(self.local, self.limits, self.call_limits, listing, checkpoints, pace)
        self.shards: dict[str, Method] = {method.name: method for method in shards.methods()}

    def route(
        self, peer_of: Callable[[Member], RoutedPeer], hedging: Hedging, timeout_s: float, clock: Callable[[], float]
    ) -> None:
        """Routes public reads to these peers."""
        self.preference: Preference = preference_of(self.view, peer_of)
        dispatch = Dispatch(self.view, self.local, peer_of, self.preference, hedging, timeout_s, self.metrics, clock)
        routed = RoutedReads(self.view, self.local, dispatch, self.limits, self.in_flight.check_room)
        listing = ShardListing(self.view, self.preference, self.clock)
        self.public = QueryMethods(
            routed, self.limits, self.call_limits._replace(monotonic=clock), listing, self.metrics
        )
        self.queries: dict[str, Method] = {method.name: method for method in self.public.methods()}

    def write(self, store: str, key: str, payload: bytes | None, seconds: int | None = None) -> None:
        """Applies the next record of the partition of a key, which has NUL between its parts; None deletes."""
        replica = self.view.replicas[self.view.shard_of(store, key.partition("\0")[0])]
        offset = replica.store.next_offset
        if replica.definition.plain:
            ms = None if seconds is None else (int(self.wall.now) - seconds) * 1000
            record = FakeRecord(key.encode(), payload, offset, record_ms=ms)
        else:
            record = tombstone(key, offset + 1, offset) if payload is None else put(key, offset + 1, offset, payload)
        replica.apply([record], offset + 1)

    def _replica(self, definition: StoreDefinition, partition: int) -> Replica:
        store, topic = PartitionStore(MemoryEngine(), definition), self.view.topics[definition.topic]
        progress = Progress(store.next_offset, 2.0, self.clock)
        progress.note_end_offset(store.next_offset, self.clock.now)
        changes = Changes(asyncio.get_running_loop(), lambda: 8, store.next_offset - 1)
        return Replica(
            definition, topic, partition, store, progress, changes, self.metrics, lambda: int(self.wall.now * 1000)
        )
