"""An instance's stores and servicers in one process, for tests that compare two ways to answer the same call."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from google.protobuf.message import Message
from prometheus_client import CollectorRegistry

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.lookups.hedging import Hedging
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.request_checks import Limits
from query_service.lookups.routing import RoutedLookup
from query_service.metrics import Metrics
from query_service.serving.call_limits import CallLimits, InFlight
from query_service.serving.servicers import QueryServicer, ShardServicer
from query_service.serving.shard_listing import ShardListing
from query_service.storage.changes import Changes
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.engine import MemoryEngine
from query_service.storage.progress import Progress
from query_service.storage.replica import Replica
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition
from testkit.query_service import (
    FakeLookup,
    FakePeers,
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


class AbortedError(Exception):
    """The servicer ended a call with a status: its code, text and trailing metadata are the arguments."""


class FakeCall:
    """A call without a deadline that ends when a test says so."""

    def __init__(self) -> None:
        """Has not ended yet."""
        self._callbacks: list[Callable[[object], None]] = []

    def time_remaining(self) -> None:
        """Says that there is no deadline."""

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        """Calls it at the end."""
        self._callbacks.append(callback)

    async def abort(self, code: object, details: str, trailing: object) -> NoReturn:
        """Ends the call with a status."""
        raise AbortedError(code, details, trailing)

    def end(self) -> None:
        """Calls all back."""
        for callback in self._callbacks:
            callback(self)


def at_once(answer: "bytes | asyncio.Future[bytes | None] | None") -> bytes | None:
    """Returns a fast answer that waits for no peer."""
    assert not isinstance(answer, asyncio.Future)
    return answer


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
        self.peers = FakePeers({peer: FakeLookup(peer.instance, forwarded=True)}, self.clock)
        self.preference = preference_of(view, self.peers.of)
        self.in_flight = InFlight(in_flight_bytes, self.metrics)
        limits, call_limits = (
            Limits(1000, 100, 2, 10_000),
            CallLimits(self.in_flight, 5.0, 60.0, response_bytes, self.clock),
        )
        local = LocalLookup(view, limits, self.clock)
        hedging = Hedging(0.0, 5.0, 0.1, self.metrics, self.clock)
        routed = RoutedLookup(
            view, local, self.peers.of, self.preference, hedging, 5.0, limits, self.metrics, self.clock
        )
        listing = ShardListing(view, self.preference, self.clock)
        self.queries = QueryServicer(routed, listing, limits, self.metrics, call_limits)
        checkpoints = Checkpoints(Path("unused"), 0, self.metrics, self.clock)  # stores in memory have none
        self.shards = ShardServicer(local, listing, limits, call_limits, checkpoints, Pace(1e9, self.clock))

    def write(self, store: str, key: str, payload: bytes | None, seconds: int | None = None) -> None:
        """Applies the next record of the partition of a key, which has NUL between its parts; None deletes."""
        replica = self.view.replicas[store, self.view.partition_of(store, key.partition("\0")[0])]
        offset = replica.store.next_offset
        if replica.definition.plain:
            ms = None if seconds is None else (int(self.wall.now) - seconds) * 1000
            record = FakeRecord(key.encode(), payload, offset, record_ms=ms)
        else:
            record = tombstone(key, offset + 1, offset) if payload is None else put(key, offset + 1, offset, payload)
        replica.apply([record], offset + 1)

    async def answer(self, method: Callable[[Any, Any], Any], request: Message) -> bytes | None:
        """Returns what a servicer's method answers, or None when it ends the call with a status."""
        try:
            response: Message = await method(request, FakeCall())
        except AbortedError:
            return None
        return response.SerializeToString()

    def _replica(self, definition: StoreDefinition, partition: int) -> Replica:
        store, topic = PartitionStore(MemoryEngine(), definition), self.view.topics[definition.topic]
        progress = Progress(store.next_offset, 2.0, self.clock)
        progress.note_end_offset(store.next_offset, self.clock.now)
        changes = Changes(asyncio.get_running_loop(), lambda: 8, store.next_offset - 1)
        return Replica(
            definition, topic, partition, store, progress, changes, self.metrics, lambda: int(self.wall.now * 1000)
        )
