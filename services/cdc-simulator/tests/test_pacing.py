"""The spreading of changes over time."""

import pytest

from cdc_simulator.pacing import Pace


def changes_in(pace: Pace, seconds: float, tick_s: float, at_most: int = 10**9) -> int:
    ticks = round(seconds / tick_s)
    return sum(pace.take(100 + (tick + 1) * tick_s, at_most) for tick in range(ticks))


@pytest.mark.parametrize("rate", [0.5, 3, 50, 1000, 12_345])
def test_as_many_changes_are_made_as_the_rate_says(rate: float) -> None:
    assert changes_in(Pace(rate, 100), 20, 0.02) == pytest.approx(rate * 20, abs=1.001)


def test_they_are_spread_evenly() -> None:
    pace = Pace(1000, 100)
    taken = [pace.take(100 + tick * 0.02, 10**9) for tick in range(1, 51)]

    assert set(taken) <= {19, 20, 21}


def test_what_falls_behind_is_caught_up_with_for_a_quarter_second_only() -> None:
    pace = Pace(1000, 100)

    assert pace.take(160, 10**9) == 251


def test_a_slow_rate_catches_up_with_one_change_at_most() -> None:
    pace = Pace(0.5, 100)

    assert pace.take(160, 10**9) == 1
    assert pace.take(160, 10**9) == 0


def test_a_rate_of_zero_makes_none() -> None:
    pace = Pace(0, 100)

    assert pace.take(1000, 10**9) == 0
    assert pace.wait_s(1000) == 0.25


def test_what_may_not_be_made_now_is_made_next() -> None:
    pace = Pace(1000, 100)

    assert pace.take(100.125, 60) == 60
    assert pace.wait_s(100.125) == 0
    assert pace.take(100.125, 60) == 60
    assert pace.take(100.125, 60) == 5


def test_a_time_when_nothing_may_be_made_is_spent_waiting_and_not_made_up_for() -> None:
    pace = Pace(1000, 100)
    none = pace.take(110, 0)

    assert none == 0
    assert pace.wait_s(110) == 0.02
    assert pace.take(110, 10**9) == 0


def test_it_waits_until_the_next_change_is_due_but_never_long() -> None:
    assert Pace(10, 100).wait_s(100) == pytest.approx(0.1)
    assert Pace(10, 100).wait_s(100.06) == pytest.approx(0.04)
    assert Pace(0.1, 100).wait_s(100) == 0.25
    assert Pace(5000, 100).wait_s(100) == 0.02
