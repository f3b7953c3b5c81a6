"""A partition that is not on disk is taken from a peer that serves it, whole or not at all."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

from query_service.cluster.shard_map import Member, ShardMap
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.reads.local import LocalReads
from query_service.reads.request_checks import Limits
from query_service.server.grpcio_server import GrpcioServer, handler_of
from query_service.server.limits import Context
from query_service.server.methods import SHARD, Method, ShardMethods
from query_service.server.partition_listing import PartitionListing
from query_service.server.seeding import Seeding
from query_service.storage.checkpoints import Checkpoints, Pace
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import StoreDirectory, Topic
from statecast.shard.v1 import shard_service_pb2 as shard
from testkit.query_service import ManualClock, call_limits, put

STORE = "orders-by-key"
ROWS = 3000
LIMITS = Limits(10, 10, 10, 10, 1 << 20)
TAKER = Member("query-2", "h:1", "h:2", 1)


class Giver:
    """The service of an instance; a test may spoil its pieces."""

    def __init__(self, methods: Sequence[Method]) -> None:
        handlers = {method.name: handler_of(method) for method in methods}
        self._read = handlers["ReadCheckpoint"]
        self.reads: list[str] = []
        self.spoil: Callable[[int], grpc.StatusCode | bytes | None] = lambda _: None
        self.server = GrpcioServer(1000, -1, None)
        self.server.add_handlers(SHARD, {**handlers, "ReadCheckpoint": self._read_spoiled})

    async def _read_spoiled(self, request: bytes, call: Context) -> bytes:
        spoiled = self.spoil(len(self.reads))
        self.reads.append(shard.ReadCheckpointRequest.FromString(request).file)
        if isinstance(spoiled, grpc.StatusCode):
            await call.abort(spoiled, "as the test says")
        response = shard.ReadCheckpointResponse.FromString(await self._read(request, call))
        if isinstance(spoiled, bytes):
            response.data = spoiled + response.data[len(spoiled) :]
        return response.SerializeToString()


@dataclass
class Scene:
    """A giver that serves all partitions of a store, and a taker with an empty directory."""

    giver: Giver
    members: list[Member]
    view: View
    directory: StoreDirectory
    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    enabled: bool = True

    async def seed(self, **topic: object) -> PartitionStore | None:
        """Seeds, and returns the store that is then on disk."""
        definition = self.view.stores[STORE]
        elsewhere = View(TAKER, [definition], 2)
        elsewhere.shard_map = ShardMap(frozenset({TAKER, *self.members}), 2)
        seeding = Seeding(elsewhere, self.directory, lambda _: {}, None, self.metrics, self.enabled, 2, self.clock)
        taken_from: Topic = replace(self.view.topics["topic"], **topic)  # type: ignore[arg-type]
        await seeding.seed(definition, taken_from, 0)
        return self.directory.resume(definition, taken_from.topic_id, 0, ROWS)

    def outcomes(self, outcome: str) -> float:
        return float(self.metrics.seeds.labels(STORE, outcome)._value.get())


@pytest.fixture
def store_fields() -> dict[str, object]:
    return {"history": {"versions": 3}}


@pytest.fixture
async def scene(
    serving_view: View,
    checkpoints: Checkpoints,
    metrics: Metrics,
    clock: ManualClock,
    wall: ManualClock,
    tmp_path: Path,
) -> AsyncIterator[Scene]:
    replica = serving_view.replicas[STORE, 0]
    replica.apply([put(f"row-{number}", 1, number, b"x" * 500) for number in range(ROWS)], ROWS)
    local, limits = LocalReads(serving_view, LIMITS, clock), call_limits(metrics, time.monotonic, 1 << 30)
    pace = Pace(1e9, time.monotonic)
    giver = Giver(ShardMethods(local, LIMITS, limits, PartitionListing(serving_view), checkpoints, pace).methods())
    address = f"127.0.0.1:{giver.server.bind_address('127.0.0.1:0')}"
    await giver.server.start()
    directory = StoreDirectory(
        tmp_path / "taker",
        RocksdbOpener(1 << 20, 8 << 20),
        limit_ms=lambda _topic: 3_600_000,
        wall_ms=lambda: int(wall.now * 1000),
        on_set_aside=lambda: None,
    )
    yield Scene(giver, [Member("query-1", address, address, 1)], serving_view, directory, metrics)
    await giver.server.stop(0)


async def test_it_takes_all_rows_and_the_offset_to_go_on_from(scene: Scene, tmp_path: Path) -> None:
    store = await scene.seed()
    assert store is not None

    rows = list(store.scan(b"row-", b"s"))
    assert rows == list(scene.view.replicas[STORE, 0].store.scan(b"row-", b"s"))
    assert len(rows) == store.next_offset == ROWS
    assert scene.outcomes("peer") == 1
    assert list((tmp_path / "data" / ".checkpoints").iterdir()) == []
    assert list((tmp_path / "taker" / ".unfinished").iterdir()) == []
    store.close()


async def test_a_break_in_the_middle_is_gone_on_from(scene: Scene) -> None:
    scene.giver.spoil = lambda read: grpc.StatusCode.UNAVAILABLE if 2 <= read < 6 else None
    store = await scene.seed()
    assert store is not None

    assert store.next_offset == ROWS
    assert len(scene.giver.reads) < 40
    store.close()


async def test_a_piece_that_arrives_otherwise_than_it_was_read_is_refused(scene: Scene, tmp_path: Path) -> None:
    scene.giver.spoil = lambda read: b"\0spoiled" if read == 3 else None

    assert await scene.seed() is None
    assert scene.outcomes("topic") == 1
    assert list((tmp_path / "taker").glob("**/*.sst")) == []


async def test_after_a_peer_that_fails_the_next_one_is_asked(scene: Scene) -> None:
    dead = Member("query-0", "127.0.0.1:1", "127.0.0.1:1", 1)
    again = replace(scene.members[0], instance="query-3")
    scene.members = [dead, *scene.members, again]
    scene.giver.spoil = lambda read: grpc.StatusCode.NOT_FOUND if read == 0 else None
    store = await scene.seed()
    assert store is not None

    assert store.next_offset == ROWS
    store.close()


@pytest.mark.parametrize("other", [{"topic_id": "another"}, {"partitions": 8}, {"name": "another"}])
async def test_rows_of_another_origin_are_refused(scene: Scene, other: dict[str, object]) -> None:
    assert await scene.seed(**other) is None
    assert scene.giver.reads == []


async def test_rows_that_are_kept_by_other_rules_are_refused(scene: Scene) -> None:
    definition = scene.view.stores[STORE]
    replica = scene.view.replicas[STORE, 0]
    replica.definition = definition.model_copy(update={"history": None})

    assert await scene.seed() is None


async def test_a_peer_that_has_not_caught_up_gives_nothing(scene: Scene) -> None:
    scene.view.replicas[STORE, 0].progress.serving = False

    assert await scene.seed() is None
    assert scene.outcomes("topic") == 1


async def test_a_busy_peer_is_asked_again(scene: Scene, checkpoints: Checkpoints) -> None:
    kept = [checkpoints.create(scene.view.replicas[STORE, 1]) for _ in range(2)]
    now = [0.0]

    def later() -> float:
        now[0] += 1.0
        if now[0] > 10:
            checkpoints.delete(kept[0].checkpoint_id)
        return now[0]

    scene.clock = later
    store = await scene.seed()
    assert store is not None

    assert store.next_offset == ROWS
    store.close()


async def test_a_peer_that_stays_busy_is_not_waited_for_for_ever(scene: Scene, checkpoints: Checkpoints) -> None:
    for _ in range(2):
        checkpoints.create(scene.view.replicas[STORE, 1])
    clock = iter(range(0, 1_000_000, 40))
    scene.clock = lambda: float(next(clock))

    assert await scene.seed() is None


async def test_it_can_be_switched_off(scene: Scene) -> None:
    scene.enabled = False

    assert await scene.seed() is None
    assert scene.giver.reads == []
