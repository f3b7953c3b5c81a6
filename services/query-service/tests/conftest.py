"""What the tests of the query service share: hosts on real RocksDB, and a view of them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from query_service.changes import Changes
from query_service.metrics import Metrics
from query_service.partition_host import PartitionHost, Place
from query_service.progress import Progress
from query_service.shard_map import Member, ShardMap
from query_service.store_directory import Identity, StoreDirectory
from query_service.stores_file import StoreDefinition
from query_service.testing import ManualClock
from query_service.view import Topic, View

EPOCH = 77
STORE = "orders-by-key"
ME = Member("query-1", "127.0.0.1:1", "127.0.0.1:2", 1)

OpenDirectory = Callable[..., StoreDirectory]
OpenHost = Callable[..., PartitionHost]


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


@pytest.fixture
def open_host(
    open_directory: OpenDirectory, metrics: Metrics, clock: ManualClock, wall: ManualClock
) -> Iterator[OpenHost]:
    """Opens hosts on real stores; each serves from the start unless it is told otherwise."""
    opened: list[PartitionHost] = []
    directory = open_directory()

    def make(
        partition: int = 0, *, serving: bool = True, loop: asyncio.AbstractEventLoop | None = None
    ) -> PartitionHost:
        place = Place(STORE, "topic", partition, EPOCH, Identity("id", partition))
        store = directory.open(place.store, place.identity)
        progress = Progress(store.next_offset, 2.0, clock)
        if serving:
            progress.saw_end(store.next_offset, clock.now)
        changes = Changes(loop or asyncio.get_running_loop())
        host = PartitionHost(place, store, progress, changes, metrics, lambda: int(wall.now * 1000))
        opened.append(host)
        return host

    yield make
    for host in opened:
        host.store.close()


@pytest.fixture
def view() -> View:
    """The view of query-1, alone in a group, with one store of four partitions and no hosts."""
    view = View(ME, [StoreDefinition(name=STORE, topic="topic", message="statecast.orders.v1.Order")], replicas=2)
    view.topics = {"topic": Topic("topic", "id", EPOCH, 4)}
    view.shard_map = ShardMap(frozenset({ME}), 2)
    return view


@pytest.fixture
async def serving_view(view: View, open_host: OpenHost) -> View:
    """As `view`, with hosts of all partitions."""
    view.hosts = {(STORE, partition): open_host(partition) for partition in range(4)}
    return view
