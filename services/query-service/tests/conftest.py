"""What the tests of the query service share: hosts on real RocksDB, and a view of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry

from query_service.cluster.partitioning import HASHES
from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import Topic, View
from query_service.lookups.hedging import Hedging
from query_service.lookups.local_lookup import LocalLookup
from query_service.lookups.lookup import Lookup
from query_service.lookups.peers import Peers
from query_service.lookups.remote_lookup import RemoteLookup
from query_service.lookups.request_checks import Limits
from query_service.lookups.routed_lookup import RoutedLookup
from query_service.lookups.routing import Routing
from query_service.metrics import Metrics
from query_service.serving.in_flight import InFlight
from query_service.serving.shard_listing import ShardListing
from query_service.serving.shard_servicer import ShardServicer
from query_service.storage.changes import Changes
from query_service.storage.partition_host import PartitionHost, Place
from query_service.storage.place_check import PlaceCheck
from query_service.storage.progress import Progress
from query_service.storage.recent_changes import RecentChanges
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Identity, StoreDirectory
from query_service.testing import ManualClock, store_definition
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc

EPOCH = 77
STORE = "orders-by-key"
RECENT = 8
LIMITS = Limits(batch_keys=1000, page_size=100, default_page_size=2, wait_ms=10_000)
ME = Member("query-1", "127.0.0.1:1", "127.0.0.1:2", 1)

OpenDirectory = Callable[..., StoreDirectory]
OpenHost = Callable[..., PartitionHost]
OpenStore = Callable[..., PartitionStore]


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
            block_cache_bytes=1 << 20,
            write_buffer_bytes=8 << 20,
            resume_limit_ms=resume_limit_s * 1000,
            wall_ms=lambda: int(wall.now * 1000),
            on_set_aside=on_set_aside,
        )

    return make


@pytest.fixture(params=["rocksdb", "memory"])
def open_store(request: pytest.FixtureRequest, open_directory: Callable[..., StoreDirectory]) -> Iterator[OpenStore]:
    """Opens a store on each engine, with fields of the stores file."""
    opened: list[PartitionStore] = []

    def make(**fields: object) -> PartitionStore:
        definition = store_definition(store={"engine": request.param}, **fields)
        opened.append(open_directory().open(definition, Identity("id", 0)))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def open_host(
    open_directory: OpenDirectory, metrics: Metrics, clock: ManualClock, wall: ManualClock
) -> Iterator[OpenHost]:
    """Opens hosts on real stores; each serves from the start unless it is told otherwise."""
    opened: list[PartitionHost] = []
    directory = open_directory()

    def make(
        partition: int = 0,
        *,
        serving: bool = True,
        loop: asyncio.AbstractEventLoop | None = None,
        **fields: object,
    ) -> PartitionHost:
        definition = store_definition(STORE, **fields)
        place = Place(STORE, "topic", partition, EPOCH, Identity("id", partition))
        store = directory.open(definition, place.identity)
        progress = Progress(store.next_offset, 2.0, clock)
        if serving:
            progress.saw_end(store.next_offset, clock.now)
        changes = Changes(loop or asyncio.get_running_loop())
        check = PlaceCheck(STORE, "topic", partition, 4, HASHES[definition.partitioner], metrics)
        recent = RecentChanges(RECENT, store.next_offset - 1)
        host = PartitionHost(
            definition, place, store, progress, changes, metrics, lambda: int(wall.now * 1000), check, recent
        )
        opened.append(host)
        return host

    yield make
    for host in opened:
        host.store.close()


@pytest.fixture
def store_fields() -> dict[str, object]:
    """What the stores file says about the one store; a test module may say something else."""
    return {}


@pytest.fixture
def view(store_fields: dict[str, object]) -> View:
    """The view of query-1, alone in a group, with one store of four partitions and no hosts."""
    view = View(ME, [store_definition(STORE, **store_fields)], replicas=2)
    view.topics = {"topic": Topic("topic", "id", EPOCH, 4)}
    view.shard_map = ShardMap(frozenset({ME}), 2)
    return view


@pytest.fixture
async def serving_view(view: View, open_host: OpenHost, store_fields: dict[str, object]) -> View:
    """As `view`, with hosts of all partitions."""
    view.hosts = {(STORE, partition): open_host(partition, **store_fields) for partition in range(4)}
    return view


@pytest.fixture(params=["local", "remote", "routed"])
async def lookup(request: pytest.FixtureRequest, serving_view: View, metrics: Metrics) -> AsyncIterator[Lookup]:
    """A lookup of each kind over the partitions of `serving_view`."""
    local = LocalLookup(serving_view, LIMITS, time.monotonic)
    if request.param == "local":
        yield local
        return
    peers = Peers(1.0, time.monotonic)
    server = grpc.aio.server()
    servicer = ShardServicer(
        local, ShardListing(serving_view, peers, 1.0), InFlight(1 << 20, metrics), 5.0, time.monotonic
    )
    shard_grpc.add_ShardServiceServicer_to_server(servicer, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    holder = Member("query-1", address, address, 1)
    if request.param == "remote":
        async with grpc.aio.insecure_channel(address) as channel:
            yield RemoteLookup(shard_grpc.ShardServiceStub(channel), "query-1", time.monotonic)
    else:
        elsewhere = View(Member("query-2", "h:1", "h:2", 1), serving_view.stores.values(), 1)
        elsewhere.topics = serving_view.topics
        elsewhere.shard_map = ShardMap(frozenset({holder}), 1)
        nothing = LocalLookup(elsewhere, LIMITS, time.monotonic)
        hedging = Hedging(0.02, 5.0, 0.1, metrics, time.monotonic)
        routing = Routing(elsewhere, nothing, peers, hedging, 5.0, metrics, time.monotonic)
        yield RoutedLookup(elsewhere, nothing, routing, LIMITS, time.monotonic)
    await peers.keep(())
    await server.stop(None)
