"""Choices by chance."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.chance import Step, another, another_number, end, take_step

CHANCES = [Random(seed) for seed in range(200)]


def test_another_is_any_but_the_present_one() -> None:
    assert {another("abc", "b", chance) for chance in CHANCES} == {"a", "c"}


def test_another_number_is_any_but_the_present_one() -> None:
    assert {another_number(4, 2, chance) for chance in CHANCES} == {1, 3, 4}


def test_another_number_is_the_same_when_there_is_no_other() -> None:
    assert {another_number(1, 1, chance) for chance in CHANCES} == {1}


def test_steps_are_taken_by_their_weights(basis: Basis) -> None:
    steps = (Step(75, lambda row, _: row + 1), Step(25, end), Step(0, lambda row, _: -row))
    taken = [take_step(1, steps, Moment(chance, basis, 0)) for chance in CHANCES]

    assert set(taken) == {2, None}
    assert 100 < taken.count(2) < 190
