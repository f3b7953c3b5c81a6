"""Why an instance is not ready."""

import pytest

from query_service.cluster.readiness import Readiness
from query_service.cluster.shard_map import MemberTracker
from query_service.cluster.view import View
from query_service.metrics import Metrics
from testkit.query_service import ManualClock, OpenReplica


class Scene:
    def __init__(self, view: View, metrics: Metrics) -> None:
        self.view = view
        self.tracker = MemberTracker(view.me, 2, 30)
        self.tracker.update(frozenset({view.me}), 0)
        self.all_open = True
        self.peers_asked = True
        self.readiness = Readiness(view, self.tracker, lambda: self.all_open, lambda: self.peers_asked, metrics)

    def reason(self) -> str | None:
        self.readiness.update()
        return self.readiness.reason


@pytest.fixture
async def scene(serving_view: View, metrics: Metrics) -> Scene:
    return Scene(serving_view, metrics)


@pytest.mark.parametrize(
    ("part", "name", "value", "reason"),
    [
        ("view", "topics", {}, "waiting for kafka to describe the topics: topic"),
        ("tracker", "joined", False, "waiting to be in the consumer group"),
        ("", "all_open", False, "opening the partitions"),
        ("", "peers_asked", False, "asking the other instances for their partitions"),
    ],
    ids=["topics", "group", "partitions", "peers"],
)
async def test_an_instance_is_ready_once_it_has_no_more_to_wait_for(
    scene: Scene, part: str, name: str, value: object, reason: str
) -> None:
    owner = getattr(scene, part) if part else scene
    before = getattr(owner, name)
    setattr(owner, name, value)
    waiting = scene.reason()
    setattr(owner, name, before)

    assert (waiting, scene.reason()) == (reason, None)


async def test_it_waits_for_its_partitions_to_catch_up(
    scene: Scene, open_replica: OpenReplica, clock: ManualClock
) -> None:
    scene.view.replicas["orders-by-key", 2].note_end_offset(7, clock.now)
    scene.view.replicas["orders-by-key", 2].progress.serving = False

    assert scene.reason() == "catching up: orders-by-key/2 (7 records to go)"


async def test_once_ready_it_stays_ready_while_it_takes_partitions_over(scene: Scene) -> None:
    scene.reason()
    scene.view.replicas["orders-by-key", 2].progress.serving = False

    assert scene.reason() is None


async def test_it_keeps_the_gauges_of_its_partitions(scene: Scene, metrics: Metrics, clock: ManualClock) -> None:
    scene.view.replicas["orders-by-key", 1].note_end_offset(3, clock.now)
    clock.now += 2
    scene.reason()
    labels = {"store": "orders-by-key", "partition": "1"}

    assert metrics.registry.get_sample_value("query_service_lag_records", labels) == 3
    assert metrics.registry.get_sample_value("query_service_lag_seconds", labels) == 2
    assert metrics.registry.get_sample_value("query_service_serving", labels) == 1
    assert metrics.registry.get_sample_value("query_service_members") == 1


async def test_a_partition_that_moved_away_has_no_gauges(scene: Scene, metrics: Metrics) -> None:
    scene.reason()
    del scene.view.replicas["orders-by-key", 1]
    scene.reason()
    labels = {"store": "orders-by-key", "partition": "1"}

    assert metrics.registry.get_sample_value("query_service_serving", labels) is None
