"""An edge lets few in at first, and then its full pace."""

from ws_edge.access.pace import Pace
from ws_edge.testing.edge import Clock


def admitted(pace: Pace, clock: Clock, seconds: float, step: float = 0.01) -> int:
    """How many of very many come in within so many seconds."""
    count = 0
    for _ in range(round(seconds / step)):
        clock.now += step
        while pace.admits():
            count += 1
    return count


def test_the_pace_rises_to_the_full_one() -> None:
    clock = Clock()
    pace = Pace(100, 10, clock)
    assert pace.admits()
    rising = [admitted(pace, clock, 1) for _ in range(12)]

    assert rising[0] < 30
    assert rising == sorted(rising)
    assert 99 <= rising[-1] <= 101


def test_what_nobody_used_is_kept_for_one_second_alone() -> None:
    clock = Clock()
    pace = Pace(100, 0, clock)
    pace.admits()
    clock.now += 60

    assert sum(pace.admits() for _ in range(1000)) == 100


def test_a_pace_below_one_a_second_lets_in_the_first() -> None:
    clock = Clock()
    pace = Pace(0.5, 10, clock)

    assert [pace.admits(), pace.admits()] == [True, False]
