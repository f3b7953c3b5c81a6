"""Choices that workloads make by chance; pure, and random only by the generator that is passed in."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from cdc_simulator.basis import Moment

DELETION_CHANCE = 0.5


class _WithStatus(Protocol):
    @property
    def status(self) -> object: ...


R = TypeVar("R")
S = TypeVar("S", bound=_WithStatus)
T = TypeVar("T")


class Step(NamedTuple):
    """One way for a row to go on, and how often: `weight` of the sum of the weights it stands among."""

    weight: int
    take: Callable[[Any, Moment], Any]


def take_step(row: R, steps: Sequence[Step], moment: Moment) -> R | None:
    """Takes one of the steps by their weights."""
    (step,) = moment.random.choices(steps, [step.weight for step in steps])
    after: R | None = step.take(row, moment)
    return after


def take_step_of_status(row: S, steps: Mapping[Any, Sequence[Step]], moment: Moment) -> S | None:
    """Takes one of the steps of the row's status; where it has none, the row is finished.

    A finished row stays as it is until, half of the times, it is deleted.
    """
    if row.status in steps:
        return take_step(row, steps[row.status], moment)
    return None if moment.random.random() < DELETION_CHANCE else row


def end(_row: object, _moment: Moment) -> None:
    """The step after which there is no row."""


def another(choices: Sequence[T], present: T, random: Random) -> T:
    """Returns one of the choices that is not the present one; there must be two or more."""
    return random.choice([choice for choice in choices if choice != present])


def another_number(highest: int, present: int, random: Random) -> int:
    """Returns a number from 1 to `highest` that is not the present one, unless there is no other."""
    return 1 + (present + random.randrange(max(1, highest - 1))) % highest
