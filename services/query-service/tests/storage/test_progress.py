"""How far a replica has applied its partition, and how far it lags."""

import pytest

from query_service.storage.progress import Progress
from testkit.query_service import ManualClock


@pytest.fixture
def progress(clock: ManualClock) -> Progress:
    """Of a partition that is read from its beginning, and served below a lag of two seconds."""
    return Progress(0, 2.0, clock)


def test_it_serves_once_it_has_applied_everything_before_an_end(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(10, clock.now)
    progress.note_applied(9)

    assert not progress.serving

    progress.note_applied(10)

    assert progress.serving


def test_an_empty_partition_serves_at_once(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(0, clock.now)

    assert progress.serving
    assert progress.applied_offset == -1


def test_it_does_not_serve_while_the_end_that_it_has_applied_is_old(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(10, clock.now)
    clock.now += 60
    progress.note_end_offset(500, clock.now)
    progress.note_applied(10)

    assert not progress.serving

    progress.note_applied(500)

    assert progress.serving


def test_the_lag_counts_from_when_the_end_was_asked_for(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(10, clock.now - 0.25)
    progress.note_applied(10)

    assert progress.lag_s == 0.25
    assert progress.lag_ms == 251


def test_the_lag_grows_while_the_end_is_unknown(clock: ManualClock) -> None:
    progress = Progress(10, 2.0, clock)
    progress.note_end_offset(10, clock.now)
    clock.now += 7

    assert progress.lag_s == 7
    assert progress.lag_records == 0


def test_each_end_offset_that_is_applied_shortens_the_lag(progress: Progress, clock: ManualClock) -> None:
    for end, asked_at in ((10, 1001.0), (20, 1002.0), (30, 1003.0)):
        progress.note_end_offset(end, asked_at)
    clock.now = 1004.0
    progress.note_applied(25)

    assert progress.lag_s == 2.0
    assert progress.lag_records == 5


def test_an_end_that_the_log_has_lost_is_not_waited_for(progress: Progress, clock: ManualClock) -> None:
    """As after an election of a leader that lacked the last records."""
    progress.note_applied(90)
    progress.note_end_offset(100, clock.now)
    clock.now += 60
    progress.note_end_offset(90, clock.now)

    assert (progress.lag_records, progress.lag_s) == (0, 0)
    assert progress.serving


def test_records_beyond_the_known_end_are_no_lag(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(10, clock.now)
    progress.note_applied(12)

    assert progress.lag_records == 0
    assert progress.applied_offset == 11


def test_once_serving_it_goes_on_serving(progress: Progress, clock: ManualClock) -> None:
    progress.note_end_offset(0, clock.now)
    clock.now += 600
    progress.note_end_offset(100_000, clock.now)

    assert progress.serving
