"""How far a restore is."""

from collections.abc import Callable

import pytest

from query_service.cluster.restore_watch import RestoreWatch, Restoring
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.partition_host import PartitionHost
from query_service.testing import ManualClock, put

STORE = "orders-by-key"
OpenHost = Callable[..., PartitionHost]


class Shown:
    """Remembers what was shown; None when it was taken away."""

    def __init__(self) -> None:
        self.all: list[Restoring | None] = []

    def show(self, now: Restoring) -> None:
        self.all.append(now)

    def clear(self) -> None:
        self.all.append(None)


@pytest.fixture
async def hosts(view: View, open_host: OpenHost, clock: ManualClock) -> list[PartitionHost]:
    """Two partitions that are not served yet; 100 and 50 records are in the log."""
    hosts = [open_host(0, serving=False), open_host(1, serving=False)]
    hosts[0].saw_end(100, clock.now)
    hosts[1].saw_end(50, clock.now)
    view.hosts = {(STORE, partition): host for partition, host in enumerate(hosts)}
    return hosts


def metric(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"query_service_{name}", {"store": STORE, **labels})


async def test_it_shows_what_is_done_and_left_over_all_partitions(
    view: View, metrics: Metrics, clock: ManualClock, hosts: list[PartitionHost]
) -> None:
    shown = Shown()
    watch = RestoreWatch(view, metrics, shown, clock)
    watch.look()
    clock.now += 2
    hosts[0].apply([put("a", 1, 29)], 30)
    watch.look()

    assert shown.all == [Restoring(0, 150, 0.0, 2), Restoring(30, 150, 2.0, 2)]
    assert metric(metrics, "restore_records_total") == 30
    assert metric(metrics, "restore_left", partition="0") == 70


async def test_a_partition_that_is_served_counts_as_done_until_all_are(
    view: View, metrics: Metrics, clock: ManualClock, hosts: list[PartitionHost]
) -> None:
    shown = Shown()
    watch = RestoreWatch(view, metrics, shown, clock)
    watch.look()
    hosts[0].apply([put("a", 1, 99)], 100)
    assert hosts[0].progress.serving
    clock.now += 1
    watch.look()
    hosts[1].apply([put("a", 1, 49)], 50)
    watch.look()
    watch.look()

    assert shown.all[1:] == [Restoring(100, 150, 1.0, 1), None]
    assert metric(metrics, "restore_records_total") == 150
    assert metric(metrics, "restore_seconds", partition="0") == 1
    assert metric(metrics, "restore_left", partition="0") is None


async def test_it_goes_on_from_where_the_disk_is(
    view: View, metrics: Metrics, clock: ManualClock, hosts: list[PartitionHost]
) -> None:
    hosts[0].apply([put("a", 1, 39)], 40)
    hosts[1].apply([put("a", 1, 49)], 50)
    shown = Shown()
    RestoreWatch(view, metrics, shown, clock).look()

    assert shown.all == [Restoring(0, 60, 0.0, 1)]


async def test_nothing_is_shown_while_all_are_served(serving_view: View, metrics: Metrics, clock: ManualClock) -> None:
    shown = Shown()
    RestoreWatch(serving_view, metrics, shown, clock).look()

    assert shown.all == []


async def test_without_a_terminal_the_metrics_tell(
    view: View, metrics: Metrics, clock: ManualClock, hosts: list[PartitionHost]
) -> None:
    RestoreWatch(view, metrics, None, clock).look()

    assert metric(metrics, "restore_left", partition="1") == 50
