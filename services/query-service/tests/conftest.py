"""Fixtures of the query service's tests: replicas on real RocksDB, and a view of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.reads.dispatch import Dispatch
from query_service.reads.hedge import Hedging
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.reads.routed import RoutedReads
from query_service.server.methods import ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.peers import PeerReads, Peers
from query_service.server.shard_channel import FEATURES
from query_service.storage.changes import Changes
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.progress import Progress
from query_service.storage.replica import Replica
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import StoreDirectory, Topic
from testkit.query_service import (
    ManualClock,
    MessageReads,
    OpenDirectory,
    OpenReplica,
    OpenStore,
    call_limits,
    preference_of,
    serve,
    store_definition,
)

EPOCH = 77
TOPIC = Topic("topic", "id", EPOCH, 4)
STORE = "orders-by-key"
RECENT = 8
LIMITS = Limits(batch_keys=1000, page_size=100, default_page_size=2, wait_ms=10_000, answer_bytes=500_000)
ME = Member("query-1", "127.0.0.1:1", "127.0.0.1:2", 1)


@pytest.fixture
def clock() -> ManualClock:
    """A monotonic clock that tests move."""
    return ManualClock()


@pytest.fixture
def wall() -> ManualClock:
    """A wall clock that tests move, in seconds."""
    return ManualClock(1_700_000_000.0)


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of one test."""
    return Metrics(CollectorRegistry())


@pytest.fixture
def open_directory(tmp_path: Path, wall: ManualClock) -> OpenDirectory:
    """Makes a StoreDirectory over the test's directory, as a new process would."""

    def make(on_set_aside: Callable[[], None] = lambda: None, resume_limit_s: int = 3600) -> StoreDirectory:
        return StoreDirectory(
            tmp_path / "data",
            RocksdbOpener(1 << 20, 8 << 20),
            limit_ms=lambda _topic: resume_limit_s * 1000,
            wall_ms=lambda: int(wall.now * 1000),
            on_set_aside=on_set_aside,
        )

    return make


@pytest.fixture(params=["rocksdb", "memory"])
def open_store(request: pytest.FixtureRequest, open_directory: OpenDirectory) -> Iterator[OpenStore]:
    """Opens a store on each engine, with fields of the stores file."""
    opened: list[PartitionStore] = []

    def make(**fields: object) -> PartitionStore:
        definition = store_definition(engine=request.param, **fields)
        opened.append(open_directory().open(definition, "id", 0, 0))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def open_replica(
    open_directory: OpenDirectory, metrics: Metrics, clock: ManualClock, wall: ManualClock
) -> Iterator[OpenReplica]:
    """Opens replicas on real stores; each serves from the start unless `serving` is false."""
    opened: list[Replica] = []
    directory = open_directory()

    def make(
        partition: int = 0,
        *,
        serving: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
        **fields: object,
    ) -> Replica:
        definition = store_definition(STORE, **fields)
        store = directory.open(definition, TOPIC.topic_id, partition, 0)
        progress = Progress(store.next_offset, 2.0, clock)
        if serving:
            progress.note_end_offset(store.next_offset, clock.now)
        replica = Replica(
            definition,
            TOPIC,
            partition,
            store,
            progress,
            Changes(loop or asyncio.get_running_loop(), lambda: RECENT, store.next_offset - 1),
            metrics,
            lambda: int(wall.now * 1000),
        )
        opened.append(replica)
        return replica

    yield make
    for replica in opened:
        replica.store.close()


@pytest.fixture
def checkpoints(tmp_path: Path, metrics: Metrics, clock: ManualClock) -> Checkpoints:
    """Keeps two checkpoints of the replicas at a time."""
    return Checkpoints(tmp_path / "data", 2, metrics, clock)


@pytest.fixture
def store_fields() -> dict[str, object]:
    """Fields of the store in the stores file; a test or its module may replace them."""
    return {}


@pytest.fixture
def view(store_fields: dict[str, object]) -> View:
    """The view of query-1, alone in a group, with one store of four partitions and no replicas."""
    view = View(ME, [store_definition(STORE, **store_fields)], replicas=2)
    view.topics = {"topic": TOPIC}
    view.shard_map = ShardMap(frozenset({ME}), 2)
    return view


@pytest.fixture
async def serving_view(view: View, open_replica: OpenReplica, store_fields: dict[str, object]) -> View:
    """As `view`, with replicas of all partitions."""
    view.replicas = {(STORE, partition): open_replica(partition, **store_fields) for partition in range(4)}
    return view


@pytest.fixture(params=["local", "remote", "routed"])
async def lookup(
    request: pytest.FixtureRequest, serving_view: View, metrics: Metrics, checkpoints: Checkpoints
) -> AsyncIterator[MessageReads]:
    """A lookup of each kind over the partitions of `serving_view`."""
    local = LocalReads(serving_view, LIMITS, time.monotonic)
    if request.param == "local":
        yield MessageReads(local)
        return
    peers, limits = Peers(1.0, 1.0, time.monotonic), call_limits(metrics, time.monotonic)
    pace = Pace(1e9, time.monotonic)
    server, address = serve(
        ShardMethods(local, LIMITS, limits, PartitionListing(serving_view), checkpoints, pace).methods()
    )
    await server.start()
    holder = Member("query-1", address, address, 1, features=FEATURES)
    if request.param == "remote":
        async with grpc.aio.insecure_channel(address) as channel:
            yield MessageReads(PeerReads(channel, "query-1", time.monotonic))
    else:
        elsewhere = View(Member("query-2", "h:1", "h:2", 1), serving_view.stores.values(), 1)
        elsewhere.topics = serving_view.topics
        elsewhere.shard_map = ShardMap(frozenset({holder}), 1)
        nothing = LocalReads(elsewhere, LIMITS, time.monotonic)
        hedging = Hedging(0.02, 5.0, 0.1, metrics, time.monotonic)
        order = preference_of(elsewhere, peers.of)
        dispatch = Dispatch(elsewhere, nothing, peers.of, order, hedging, 5.0, metrics, time.monotonic)
        yield MessageReads(RoutedReads(elsewhere, nothing, dispatch, LIMITS, limits.in_flight.check_room))
    await peers.keep(())
    await server.stop(0)
