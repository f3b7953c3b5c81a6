"""How far a replica is."""

from query_service.storage.progress import Progress
from query_service.testing import ManualClock


def test_it_serves_once_it_has_reached_an_end(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(10, clock.now)
    progress.applied(9)

    assert not progress.serving

    progress.applied(10)

    assert progress.serving


def test_an_empty_partition_serves_at_once(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(0, clock.now)

    assert progress.serving
    assert progress.current_through == -1


def test_it_does_not_serve_when_the_end_that_it_reached_is_old(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(10, clock.now)
    clock.now += 60
    progress.saw_end(500, clock.now)
    progress.applied(10)

    assert not progress.serving

    progress.applied(500)

    assert progress.serving


def test_the_lag_counts_from_when_the_end_was_asked_for(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(10, clock.now - 0.25)
    progress.applied(10)

    assert progress.lag_s == 0.25
    assert progress.lag_ms == 251


def test_the_lag_grows_while_nobody_knows_the_end(clock: ManualClock) -> None:
    progress = Progress(10, 2.0, clock)
    progress.saw_end(10, clock.now)
    clock.now += 7

    assert progress.lag_s == 7
    assert progress.lag_records == 0


def test_each_end_that_is_reached_tells_a_newer_time(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    for end, asked_at in ((10, 1001.0), (20, 1002.0), (30, 1003.0)):
        progress.saw_end(end, asked_at)
    clock.now = 1004.0
    progress.applied(25)

    assert progress.lag_s == 2.0
    assert progress.lag_records == 5


def test_records_beyond_the_known_end_are_no_lag(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(10, clock.now)
    progress.applied(12)

    assert progress.lag_records == 0
    assert progress.current_through == 11


def test_once_serving_it_goes_on_serving(clock: ManualClock) -> None:
    progress = Progress(0, 2.0, clock)
    progress.saw_end(0, clock.now)
    clock.now += 600
    progress.saw_end(100_000, clock.now)

    assert progress.serving
