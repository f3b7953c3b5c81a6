"""Replicas are opened by the shard map, and closed only when others serve them."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import pytest
from structlog.testing import capture_logs

from query_service.cluster.disk_watch import DiskWatch
from query_service.cluster.placement import Placement, ReplicaFactory
from query_service.cluster.shard_map import Member, ShardMap, StorePartition
from query_service.cluster.view import View
from query_service.errors import StoreError, StoreFailedError, StoreUnusableError
from query_service.metrics import Metrics
from query_service.storage.progress import EndOffset
from query_service.storage.replica import Replica
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Topic
from query_service.storage.stores_file import StoreDefinition
from testkit.query_service import ManualClock, OpenDirectory, OpenReplica, put, store_definition

STORE = "orders-by-key"
OTHER = Member("query-2", "h:1", "h:2", 1)
KEPT_S = 600.0


class FakeFactory:
    """Opens replicas by a function, or fails."""

    def __init__(self, open_replica: OpenReplica) -> None:
        self.open_replica = open_replica
        self.failure: StoreFailedError | None = None
        self.on_disk = {0, 1, 2, 3}
        self.begun_anew: list[int] = []

    def resume(self, store: StoreDefinition, topic: Topic, partition: int, end: EndOffset) -> Replica | None:
        return self.open(store, topic, partition, end) if partition in self.on_disk else None

    def open(self, store: StoreDefinition, topic: Topic, partition: int, end: EndOffset) -> Replica:
        if self.failure:
            raise self.failure
        if partition not in self.on_disk:
            self.begun_anew.append(partition)
        return self.open_replica(partition)


class FakeChangelog:
    """Records which replicas it follows."""

    def __init__(self) -> None:
        self.followed: list[int] = []

    def follow(self, replica: Replica) -> None:
        self.followed.append(replica.partition)

    def unfollow(self, replica: Replica) -> "Future[None]":
        self.followed.remove(replica.partition)
        replica.close()
        done: Future[None] = Future()
        done.set_result(None)
        return done


class Scene:
    """A placement with peers that serve the partitions that the test names."""

    def __init__(self, view: View, open_replica: OpenReplica, disk: DiskWatch) -> None:
        self.view = view
        self.factory = FakeFactory(open_replica)
        self.changelog = FakeChangelog()
        self.served: frozenset[StorePartition] = frozenset()
        self.seeding: list[int] = []
        self.seedable: set[int] = set()
        self.may_seed = asyncio.Event()
        view.end_offsets = {("topic", partition): EndOffset(0, 0.0) for partition in range(4)}
        self.placement = Placement(
            view,
            self.factory.open,
            self.changelog.follow,
            self.changelog.unfollow,
            self.serving_partitions,
            self.factory.resume,
            self.seed,
            disk,
        )

    async def seed(self, store: StoreDefinition, topic: Topic, partition: int) -> None:
        self.seeding.append(partition)
        await self.may_seed.wait()
        if partition in self.seedable:
            self.factory.on_disk.add(partition)

    async def serving_partitions(self, member: Member) -> frozenset[StorePartition]:
        assert member == OTHER
        return self.served

    @property
    def held(self) -> set[int]:
        return {partition for _, partition in self.view.replicas}


@pytest.fixture
async def scene(
    view: View,
    open_replica: OpenReplica,
    open_directory: OpenDirectory,
    metrics: Metrics,
    clock: ManualClock,
) -> Scene:
    disk = DiskWatch(view, open_directory(), metrics, KEPT_S, 3600, clock)
    return Scene(view, partial(open_replica, loop=asyncio.get_running_loop()), disk)


async def test_it_holds_what_the_shard_map_gives_it(scene: Scene) -> None:
    await scene.placement.reconcile()

    assert scene.held == set(scene.changelog.followed) == {0, 1, 2, 3}
    assert scene.placement.is_complete


async def test_what_topics_bring_that_are_described_late_is_not_open_yet(scene: Scene) -> None:
    described, scene.view.topics = scene.view.topics, {}
    await scene.placement.reconcile()
    scene.view.topics = described

    assert not scene.placement.is_complete
    await scene.placement.reconcile()
    assert scene.placement.is_complete


async def test_before_it_has_joined_it_holds_nothing(scene: Scene) -> None:
    scene.view.shard_map = ShardMap(frozenset(), 2)
    await scene.placement.reconcile()

    assert scene.held == set()


async def test_a_partition_whose_end_offset_is_unknown_waits(scene: Scene) -> None:
    del scene.view.end_offsets["topic", 2]
    await scene.placement.reconcile()

    assert scene.held == {0, 1, 3}
    assert not scene.placement.is_complete


async def test_a_disk_that_refuses_is_tried_again_and_logged_once_for_each_partition(scene: Scene) -> None:
    scene.factory.failure = StoreFailedError("No space left on device")
    with capture_logs() as logs:
        for _ in range(3):
            await scene.placement.reconcile()
    assert scene.held == set()
    assert [log["partition"] for log in logs if "cannot open" in log["event"]] == [0, 1, 2, 3]

    scene.factory.failure = None
    await scene.placement.reconcile()

    assert scene.held == {0, 1, 2, 3}


async def test_a_partition_that_moves_away_is_kept_until_its_new_holder_serves_it(scene: Scene) -> None:
    await scene.placement.reconcile()
    scene.view.shard_map = ShardMap(frozenset({scene.view.me, OTHER}), 1)
    mine = {partition for _, partition in scene.view.assigned()}
    await scene.placement.reconcile()
    assert scene.held == {0, 1, 2, 3}

    scene.served = frozenset((STORE, partition) for partition in range(4) if partition != min({0, 1, 2, 3} - mine))
    await scene.placement.reconcile()
    assert scene.held == mine | {min({0, 1, 2, 3} - mine)}

    scene.served = frozenset((STORE, partition) for partition in range(4))
    await scene.placement.reconcile()

    assert scene.held == set(scene.changelog.followed) == mine
    assert await scene.placement.handed_over()


def on_disk(scene: Scene) -> set[int]:
    return set(scene.placement.disk.directory.partitions(store_definition(STORE)))


async def test_what_has_moved_away_is_deleted_after_a_delay_that_covers_a_restart(
    scene: Scene, clock: ManualClock, metrics: Metrics
) -> None:
    await scene.placement.reconcile()
    alone = scene.view.shard_map
    scene.view.shard_map = ShardMap(frozenset({scene.view.me, OTHER}), 1)
    scene.served = frozenset((STORE, partition) for partition in range(4))
    mine = {partition for _, partition in scene.view.assigned()}
    for _ in range(2):
        await scene.placement.reconcile()
        clock.now += KEPT_S - 20
        assert on_disk(scene) == {0, 1, 2, 3}
        scene.view.shard_map = alone  # the other restarts, and its partitions are held here meanwhile
        await scene.placement.reconcile()
        assert scene.held == {0, 1, 2, 3}
        scene.view.shard_map = ShardMap(frozenset({scene.view.me, OTHER}), 1)
        clock.now += 20

    await scene.placement.reconcile()
    clock.now += 20
    await scene.placement.reconcile()
    assert metrics.registry.get_sample_value("query_service_disk_bytes", {"kind": "released"})
    scene.served = frozenset()
    clock.now += KEPT_S
    await scene.placement.reconcile()
    assert on_disk(scene) == {0, 1, 2, 3}, "nobody else has the rows now"

    scene.served = frozenset((STORE, partition) for partition in range(4))
    clock.now += KEPT_S
    await scene.placement.reconcile()

    assert on_disk(scene) == scene.held == mine


async def test_a_store_that_is_removed_while_its_disk_is_given_back_ends_nothing(
    scene: Scene, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.view.shard_map = ShardMap(frozenset({scene.view.me, OTHER}), 1)
    for partition in range(4):
        scene.placement.disk.directory.open(store_definition(STORE), "id", partition, 0).close()
    await scene.placement.reconcile()

    async def served_and_removed(_: Member) -> frozenset[StorePartition]:
        scene.view.stores = {}
        return frozenset((STORE, partition) for partition in range(4))

    monkeypatch.setattr(scene.placement, "serving_partitions", served_and_removed)
    clock.now += KEPT_S
    await scene.placement.reconcile()

    assert on_disk(scene) == {0, 1, 2, 3}, "the files of a store that is gone stay"


async def test_outside_of_the_group_nothing_is_deleted(scene: Scene, clock: ManualClock) -> None:
    scene.placement.disk.directory.open(store_definition(STORE), "id", 2, 0).close()
    for shard_map in (ShardMap(frozenset(), 2), ShardMap(frozenset({OTHER}), 2)):
        scene.view.shard_map = shard_map
        for _ in range(3):
            await scene.placement.reconcile()
            clock.now += KEPT_S

    assert on_disk(scene) == {2}


async def test_a_topic_that_was_made_anew_is_opened_anew(scene: Scene) -> None:
    await scene.placement.reconcile()
    before = dict(scene.view.replicas)
    scene.view.topics = {"topic": Topic("topic", "id", 77, 4)}
    await scene.placement.reconcile()
    assert scene.view.replicas == before

    scene.view.topics = {"topic": Topic("topic", "another", 78, 4)}
    await scene.placement.reconcile()

    assert scene.held == {0, 1, 2, 3}
    assert all(scene.view.replicas[shard] is not replica for shard, replica in before.items())


TOPIC = Topic("topic", "id", 77, 4)
Open = Callable[[int, int], Replica]


@pytest.fixture
async def factory(open_directory: OpenDirectory, metrics: Metrics) -> ReplicaFactory:
    directory, loop = open_directory(), asyncio.get_running_loop()
    return ReplicaFactory(directory, directory.wall_ms, loop, metrics, 2.0, lambda: 100)


async def test_a_new_store_knows_of_no_deletion_before_the_end_offset(factory: ReplicaFactory) -> None:
    replica = factory.open(store_definition(), TOPIC, 1, EndOffset(50, 0.0))

    assert replica.store.purged_offset == 49
    assert replica.topic.epoch == 77
    assert not replica.progress.serving
    replica.store.close()


async def test_a_store_on_disk_is_resumed_from(factory: ReplicaFactory) -> None:
    replica = factory.open(store_definition(), TOPIC, 1, EndOffset(50, 0.0))
    replica.apply([put("a", 1, 60)], 61)
    replica.store.close()
    again = factory.open(store_definition(), TOPIC, 1, EndOffset(100, 0.0))

    assert again.progress.next_offset == 61
    assert again.store.purged_offset == 49
    assert again.progress.lag_records == 39
    again.store.close()


@pytest.mark.parametrize("reason", [None, "the store is corrupt"])
async def test_a_replica_starts_over_from_an_empty_store(factory: ReplicaFactory, reason: str | None) -> None:
    replica = factory.open(store_definition(), TOPIC, 1, EndOffset(0, 0.0))
    replica.apply([put("a", 1, 60)], 61)
    replica.note_end_offset(70, 0.0)
    factory.reopen(replica, reason)

    assert replica.store.get_many([b"a"]) == [None]
    assert (replica.progress.next_offset, replica.progress.serving) == (0, False)
    assert replica.store.purged_offset == 69
    replica.store.close()


@pytest.mark.parametrize(("end", "restoring"), [(10_000, False), (10_001, True)])
async def test_a_replica_far_behind_restores(factory: ReplicaFactory, end: int, restoring: bool) -> None:
    replica = factory.open(store_definition(), TOPIC, 1, EndOffset(end, time.monotonic()))
    assert replica.store.restoring == restoring
    replica.apply([put("a", 1, end - 1)], end)

    assert replica.progress.serving
    assert not replica.store.restoring
    replica.store.close()


@pytest.mark.parametrize("failure", [StoreUnusableError("a block is corrupt"), StoreFailedError("no space left")])
@pytest.mark.parametrize("again", [False, True])
async def test_a_store_that_fails_while_it_is_opened_is_opened_again(
    factory: ReplicaFactory, monkeypatch: pytest.MonkeyPatch, failure: StoreError, *, again: bool
) -> None:
    replica = factory.open(store_definition(), TOPIC, 1, EndOffset(0, 0.0))
    replica.store.close()

    def fail(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patched:
        patched.setattr(PartitionStore, "check_spread", fail)
        with pytest.raises(StoreFailedError):
            factory.reopen(replica, None) if again else factory.open(store_definition(), TOPIC, 1, EndOffset(0, 0.0))

    factory.open(store_definition(), TOPIC, 1, EndOffset(0, 0.0)).store.close()
    set_aside = list((factory.directory.root / "set-aside").glob("s-1-*"))
    assert len(set_aside) == (failure.args == ("a block is corrupt",))


async def test_what_is_not_on_disk_is_seeded_while_the_rest_is_held(scene: Scene) -> None:
    scene.factory.on_disk, scene.seedable = {0, 1}, {2}
    await scene.placement.reconcile()
    await asyncio.sleep(0)

    assert scene.held == {0, 1}
    assert scene.seeding == [2, 3]
    assert not scene.placement.is_complete

    scene.may_seed.set()
    await asyncio.wait_for(scene.placement.changed.wait(), 5)
    await asyncio.sleep(0)
    await scene.placement.reconcile()

    assert scene.held == {0, 1, 2, 3}
    assert scene.factory.begun_anew == [3]
    assert scene.seeding == [2, 3]


async def test_a_seed_ends_with_the_assignment_of_its_partition(scene: Scene) -> None:
    scene.factory.on_disk, scene.seedable = {0, 1, 2}, {3}
    await scene.placement.reconcile()
    await asyncio.sleep(0)
    before = scene.view.shard_map
    scene.view.shard_map = ShardMap(frozenset(), 2)
    await scene.placement.reconcile()
    scene.may_seed.set()
    await asyncio.sleep(0)
    scene.view.shard_map = before
    await scene.placement.reconcile()
    await asyncio.sleep(0)

    assert 3 not in scene.held
    assert scene.seeding == [3, 3]
