"""The life cycle of the rows of a table that keeps its size: they are created, change by legal steps, and end; pure.

Everything is random only by the generator that is passed in.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from cdc_simulator.domain import SECOND_US, DatabaseParameters, Mutation, Rows, StepContext
from cdc_simulator.source_table import Row

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

    def next_mutation(self, tables: Mapping[str, Rows], context: StepContext) -> Mutation:
        """Returns the next mutation of the table, which is to have about as many rows as the parameters say."""
        rows, random, target = tables[self.table], context.random, context.parameters.rows
        # Grows with the rows that are missing, so that the table stays about its size.
        creation_chance = self.creation_share + (target - len(rows)) / (SIZE_TOLERANCE * target)
        if random.random() >= creation_chance:
            for _ in range(MAX_PICKS):
                row = random_row(rows, random)
                after = None if row is None else self.advance(row, context)
                if after != row:
                    return Mutation(self.table, row, after)
        return Mutation(self.table, None, self.create(rows.next_number, context))

    def initial_rows(self, parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
        """Yields inserts of rows from 1 on, created within the three days before `now_us`, which took some steps since.

        There are as many as the parameters say. The same seed gives the same rows.
        """
        for number in range(1, parameters.rows + 1):
            random = Random(f"{parameters.seed}:initial:{number}")  # noqa: S311  a simulation, no secret
            age_us = random.randrange(MIN_INITIAL_AGE_S * SECOND_US, MAX_INITIAL_AGE_S * SECOND_US)
            steps = random.randrange(MAX_INITIAL_STEPS + 1)
            row = self.create(number, StepContext(random, parameters, now_us - age_us))
            for step in range(1, steps + 1):
                step_us = now_us - age_us + age_us * step // (steps + 1)
                after = self.advance(row, StepContext(random, parameters, step_us))
                row = row if after is None else after
            yield Mutation(self.table, None, row)


def random_row(rows: Rows, random: Random) -> Row | None:
    """Returns any of the rows; None when there is none."""
    return rows.nth(random.randrange(len(rows))) if len(rows) else None


def take_step(row: R, steps: Sequence[Step], context: StepContext) -> R | None:
    (step,) = context.random.choices(steps, [step.weight for step in steps])
    after: R | None = step.apply(row, context)
    return after


def delete(_row: object, _context: StepContext) -> None:
    """Ends the row: after this step there is none."""


def another(choices: Sequence[T], present: T, random: Random) -> T:
    """Returns one of the choices that is not the present one; there must be two or more."""
    return random.choice([choice for choice in choices if choice != present])


def another_number(highest: int, present: int, random: Random) -> int:
    """Returns a number from 1 to `highest` that is not the present one, unless there is no other."""
    return 1 + (present + random.randrange(max(1, highest - 1))) % highest


def number_at_end(text: str) -> int:
    """Returns the number that the text ends with; 0 when others have written something else."""
    digits = re.search(r"\d{1,18}$", text, re.ASCII)
    return int(digits[0]) if digits else 0
