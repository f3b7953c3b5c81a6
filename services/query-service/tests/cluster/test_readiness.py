"""Why an instance is not ready."""

from collections.abc import Callable

import pytest

from query_service.cluster.readiness import Readiness
from query_service.cluster.roster import Roster
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.partition_host import PartitionHost
from query_service.testing import ManualClock


class FakePlacement:
    """Has opened everything, or not."""

    settled = True


class Scene:
    def __init__(self, view: View, metrics: Metrics) -> None:
        self.view = view
        self.roster = Roster(view.me, 2, 30)
        self.roster.update(frozenset({view.me}), 0)
        self.placement = FakePlacement()
        self.readiness = Readiness(view, self.roster, self.placement, metrics)

    def reason(self) -> str | None:
        self.readiness.look()
        return self.readiness.reason


@pytest.fixture
async def scene(serving_view: View, metrics: Metrics) -> Scene:
    return Scene(serving_view, metrics)


async def test_an_instance_whose_partitions_are_served_is_ready(scene: Scene) -> None:
    assert scene.reason() is None


async def test_it_waits_for_its_topics(scene: Scene) -> None:
    scene.view.topics = {}

    assert scene.reason() == "waiting for kafka to describe the topics: topic"


async def test_it_waits_to_be_in_the_group(scene: Scene) -> None:
    scene.roster.joined = False

    assert scene.reason() == "waiting to be in the consumer group"


async def test_it_waits_for_its_partitions_to_open(scene: Scene) -> None:
    scene.placement.settled = False

    assert scene.reason() == "opening the partitions"


async def test_it_waits_for_its_partitions_to_catch_up(
    scene: Scene, open_host: Callable[..., PartitionHost], clock: ManualClock
) -> None:
    scene.view.hosts["orders-by-key", 2].saw_end(7, clock.now)
    scene.view.hosts["orders-by-key", 2].progress.serving = False

    assert scene.reason() == "catching up: orders-by-key/2 (7 records to go)"


async def test_once_ready_it_stays_ready_while_it_takes_partitions_over(scene: Scene) -> None:
    scene.reason()
    scene.view.hosts["orders-by-key", 2].progress.serving = False

    assert scene.reason() is None


async def test_it_keeps_the_gauges_of_its_partitions(scene: Scene, metrics: Metrics, clock: ManualClock) -> None:
    scene.view.hosts["orders-by-key", 1].saw_end(3, clock.now)
    clock.now += 2
    scene.reason()
    labels = {"store": "orders-by-key", "partition": "1"}

    assert metrics.registry.get_sample_value("query_service_lag_records", labels) == 3
    assert metrics.registry.get_sample_value("query_service_lag_seconds", labels) == 2
    assert metrics.registry.get_sample_value("query_service_serving", labels) == 1
    assert metrics.registry.get_sample_value("query_service_members") == 1


async def test_a_partition_that_moved_away_has_no_gauges(scene: Scene, metrics: Metrics) -> None:
    scene.reason()
    del scene.view.hosts["orders-by-key", 1]
    scene.reason()
    labels = {"store": "orders-by-key", "partition": "1"}

    assert metrics.registry.get_sample_value("query_service_serving", labels) is None
