"""The running estimate of the slowest answers."""

import random

import pytest

from query_service.lookups.slow_answers import SlowAnswers


def test_it_settles_where_one_answer_in_twenty_is_slower() -> None:
    times = random.Random(7)
    slow = SlowAnswers(0.001, 10)
    for _ in range(5000):
        slow.note(times.random())
    above: list[bool] = []
    for _ in range(5000):
        seconds = times.random()
        above.append(seconds > slow.after_s)
        slow.note(seconds)

    assert sum(above) / len(above) == pytest.approx(0.05, abs=0.02)


def test_it_stays_between_its_bounds() -> None:
    slow = SlowAnswers(0.02, 0.5)
    for _ in range(1000):
        slow.note(0.0)
    assert slow.after_s == 0.02

    for _ in range(1000):
        slow.note(60.0)

    assert slow.after_s == 0.5


def test_it_forgets_a_slow_time() -> None:
    slow = SlowAnswers(0.001, 10)
    for _ in range(100):
        slow.note(1.0)
    for _ in range(2000):
        slow.note(0.001)

    assert slow.after_s == 0.001
