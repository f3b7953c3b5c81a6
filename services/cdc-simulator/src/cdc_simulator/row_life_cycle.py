"""The life cycle of the rows of a table that keeps its size: they are created, change by legal steps, and end; pure.

Everything is random only by the generator that is passed in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from cdc_simulator.domain import SECOND_US, DatabaseParameters, Domain, Mutation, Rows, SourceTable, StepContext

DELETION_CHANCE = 0.5
MAX_PICKS = 20
SIZE_TOLERANCE = 0.2
MIN_INITIAL_AGE_S = 60
MAX_INITIAL_AGE_S = 3 * 24 * 3600
MAX_INITIAL_STEPS = 7

R = TypeVar("R")
T = TypeVar("T")


class Step(NamedTuple):
    """One way in which a row can change, and how often: `weight` of the sum of the weights it stands among."""

    weight: int
    apply: Callable[[Any, StepContext], Any]
    """Returns the row after the step; None when it ends."""


@dataclass(frozen=True)
class RowLifeCycle(Generic[R]):
    """How the rows of one table are created and change."""

    table: str
    create: Callable[[int, StepContext], R]
    """Makes a new row with that primary key."""
    steps: Sequence[Step] | Mapping[Any, Sequence[Step]]
    """The steps of all rows, or of those of each `status`; a row with another status is finished."""
    creation_share: float
    """The share of new rows among all mutations while the table has its size: one in the number of a row's changes."""

    def advance(self, row: Any, context: StepContext) -> R | None:
        """Returns the row after one legal step: None when it ends.

        A finished row stays as it is until, half of the times, it is deleted.
        """
        if not isinstance(self.steps, Mapping):
            return take_step(row, self.steps, context)
        if not self.is_finished(row):
            return take_step(row, self.steps[row.status], context)
        return None if context.random.random() < DELETION_CHANCE else row

    def is_finished(self, row: Any) -> bool:
        """Returns whether nothing but deletion can happen to the row any more."""
        return isinstance(self.steps, Mapping) and row.status not in self.steps


def take_step(row: R, steps: Sequence[Step], context: StepContext) -> R | None:
    """Takes one of the steps by their weights."""
    (step,) = context.random.choices(steps, [step.weight for step in steps])
    after: R | None = step.apply(row, context)
    return after


def delete(_row: object, _context: StepContext) -> None:
    """The step after which there is no row."""


def another(choices: Sequence[T], present: T, random: Random) -> T:
    """Returns one of the choices that is not the present one; there must be two or more."""
    return random.choice([choice for choice in choices if choice != present])


def another_number(highest: int, present: int, random: Random) -> int:
    """Returns a number from 1 to `highest` that is not the present one, unless there is no other."""
    return 1 + (present + random.randrange(max(1, highest - 1))) % highest


def next_row_mutation(rows: Rows, life_cycle: RowLifeCycle[Any], target: int, context: StepContext) -> Mutation:
    """Returns the next mutation of a table that is to have about `target` rows."""
    random = context.random
    # Grows with the rows that are missing, so that the table stays about its size.
    creation_chance = life_cycle.creation_share + (target - len(rows)) / (SIZE_TOLERANCE * target)
    if random.random() >= creation_chance and len(rows):
        for _ in range(MAX_PICKS):
            row = rows.nth(random.randrange(len(rows)))
            after = life_cycle.advance(row, context)
            if after != row:
                return Mutation(life_cycle.table, row, after)
    return Mutation(life_cycle.table, None, life_cycle.create(rows.next_number, context))


def aged_rows(
    life_cycle: RowLifeCycle[Any], count: int, parameters: DatabaseParameters, now_us: int
) -> Iterator[Mutation]:
    """Yields inserts of rows 1 to `count`, created within the three days before `now_us`, which took some steps since.

    The same seed gives the same rows.
    """
    for number in range(1, count + 1):
        random = Random(f"{parameters.seed}:initial:{number}")  # noqa: S311  a simulation, no secret
        age_us = random.randrange(MIN_INITIAL_AGE_S * SECOND_US, MAX_INITIAL_AGE_S * SECOND_US)
        steps = random.randrange(MAX_INITIAL_STEPS + 1)
        row = life_cycle.create(number, StepContext(random, parameters, now_us - age_us))
        for step in range(1, steps + 1):
            step_us = now_us - age_us + age_us * step // (steps + 1)
            after = life_cycle.advance(row, StepContext(random, parameters, step_us))
            row = row if after is None else after
        yield Mutation(life_cycle.table, None, row)


def single_table_domain(name: str, table: SourceTable[R], life_cycle: RowLifeCycle[R]) -> Domain:
    """Returns a domain whose one table begins with the number of rows of the parameters and keeps about as many."""

    def initial_rows(parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
        return aged_rows(life_cycle, parameters.rows, parameters, now_us)

    def next_mutation(tables: Mapping[str, Rows], context: StepContext) -> Mutation:
        return next_row_mutation(tables[table.name], life_cycle, context.parameters.rows, context)

    return Domain(name, (table,), initial_rows, next_mutation)
