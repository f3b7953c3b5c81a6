"""How far a restore is, in metrics and on a terminal."""

from io import StringIO

import pytest

from query_service.cluster.restore_watch import RestoreProgress, RestoreWatch, bar, terminal_bar
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.replica import Replica
from testkit.query_service import ManualClock, OpenReplica, put

STORE = "orders-by-key"

Shown = list[RestoreProgress | None]


@pytest.fixture
async def replicas(view: View, open_replica: OpenReplica, clock: ManualClock) -> list[Replica]:
    """Two partitions that are not served yet; 100 and 50 records are in the log."""
    replicas = [open_replica(0, serving=False), open_replica(1, serving=False)]
    replicas[0].note_end_offset(100, clock.now)
    replicas[1].note_end_offset(50, clock.now)
    view.replicas = {(STORE, partition): replica for partition, replica in enumerate(replicas)}
    return replicas


def metric(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"query_service_{name}", {"store": STORE, **labels})


async def test_it_shows_what_is_done_and_left_over_all_partitions(
    view: View, metrics: Metrics, clock: ManualClock, replicas: list[Replica]
) -> None:
    shown: Shown = []
    watch = RestoreWatch(view, metrics, shown.append, clock)
    watch.update()
    clock.now += 2
    replicas[0].apply([put("a", 1, 29)], 30)
    watch.update()

    assert shown == [RestoreProgress(0, 150, 0.0, 2), RestoreProgress(30, 150, 2.0, 2)]
    assert metric(metrics, "restore_records_total") == 30
    assert metric(metrics, "restore_left", partition="0") == 70


async def test_a_partition_that_is_served_counts_as_done_until_all_are(
    view: View, metrics: Metrics, clock: ManualClock, replicas: list[Replica]
) -> None:
    shown: Shown = []
    watch = RestoreWatch(view, metrics, shown.append, clock)
    watch.update()
    replicas[0].apply([put("a", 1, 99)], 100)
    assert replicas[0].progress.serving
    clock.now += 1
    watch.update()
    replicas[1].apply([put("a", 1, 49)], 50)
    watch.update()
    watch.update()

    assert shown[1:] == [RestoreProgress(100, 150, 1.0, 1), None]
    assert metric(metrics, "restore_records_total") == 150
    assert metric(metrics, "restore_seconds", partition="0") == 1
    assert metric(metrics, "restore_left", partition="0") is None


async def test_it_resumes_from_what_is_on_disk(
    view: View, metrics: Metrics, clock: ManualClock, replicas: list[Replica]
) -> None:
    replicas[0].apply([put("a", 1, 39)], 40)
    replicas[1].apply([put("a", 1, 49)], 50)
    shown: Shown = []
    RestoreWatch(view, metrics, shown.append, clock).update()

    assert shown == [RestoreProgress(0, 60, 0.0, 1)]


async def test_nothing_is_display_while_all_are_served(
    serving_view: View, metrics: Metrics, clock: ManualClock
) -> None:
    shown: Shown = []
    RestoreWatch(serving_view, metrics, shown.append, clock).update()

    assert shown == []


def test_it_says_how_far_the_restore_is_and_how_long_it_still_takes() -> None:
    assert bar(RestoreProgress(done=300_000, total=1_200_000, seconds=2, partitions=4)) == (
        "restoring 4 partitions [#######.......................]  25% 300,000 of 1,200,000 records, 150,000/s, 6 s left"
    )


def test_it_promises_nothing_before_the_first_record() -> None:
    assert bar(RestoreProgress(done=0, total=10, seconds=0, partitions=1)).endswith("0 of 10 records, 0/s")
    assert bar(RestoreProgress(done=0, total=0, seconds=1, partitions=1)).count("#") == 30


def test_it_draws_over_its_own_line_and_takes_it_away() -> None:
    terminal = StringIO()
    show = terminal_bar(terminal)
    show(RestoreProgress(1, 2, 1, 1))
    show(None)

    assert terminal.getvalue().startswith("\x1b[Krestoring 1 partitions [")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue()
