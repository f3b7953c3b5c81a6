"""Rows are as old as the clock says, unless it is ahead for a moment."""

import pytest
from structlog.testing import capture_logs

from query_service.storage.steady_clock import SteadyClock
from testkit.query_service import ManualClock

HOUR, YEAR = 3600, 365 * 86_400
BEGAN = 1_700_000_000


class Clocks:
    """A steady clock that lets ten minutes pass before it believes in a jump."""

    def __init__(self, clock: ManualClock, wall: ManualClock) -> None:
        self.monotonic, self.wall = clock, wall
        self.steady = SteadyClock(lambda: int(wall.now * 1000), clock, 600)

    def go_on(self, seconds: float) -> float:
        """Lets both clocks go on; returns the seconds that the steady clock then shows since it began."""
        self.monotonic.now += seconds
        self.wall.now += seconds
        return self.steady() / 1000 - BEGAN


@pytest.fixture
def clocks(clock: ManualClock, wall: ManualClock) -> Clocks:
    return Clocks(clock, wall)


def test_a_small_step_and_a_step_back_count_at_once(clocks: Clocks) -> None:
    clocks.wall.now += 50
    assert clocks.go_on(1) == 51
    clocks.wall.now -= 2 * HOUR

    assert clocks.go_on(1) == 52 - 2 * HOUR


@pytest.mark.parametrize("ahead_s", [HOUR, YEAR])
def test_a_jump_ahead_counts_once_it_has_lasted(clocks: Clocks, ahead_s: int) -> None:
    with capture_logs() as logs:
        clocks.wall.now += ahead_s
        assert [clocks.go_on(60), clocks.go_on(599)] == [60, 659]
        clocks.wall.now -= ahead_s
        assert clocks.go_on(1) == 660
        clocks.wall.now += ahead_s
        assert [clocks.go_on(1), clocks.go_on(599)] == [661, 1260]

    assert clocks.go_on(1) == 1261 + ahead_s
    assert [log["ahead_s"] for log in logs] == [ahead_s] * 2
