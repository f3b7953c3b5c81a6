"""The common life of the rows of a table that keeps its size: they begin, go on step by step, and end; pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domain import Rows
from cdc_simulator.mutation import Delete, Insert, Mutation, Update
from cdc_simulator.timestamps import US

MOST_PICKS = 20
SIZE_TOLERANCE = 0.2
YOUNGEST_S = 60
OLDEST_S = 3 * 24 * 3600
MOST_INITIAL_STEPS = 7

R = TypeVar("R")


@dataclass(frozen=True)
class Life(Generic[R]):
    """How the rows of one table live."""

    table: str
    begin: Callable[[int, Moment], R]
    """Makes a new row with that primary key."""
    go_on: Callable[[R, Moment], R | None]
    """Returns the row after one legal step: absent when it ends, an equal row when nothing happens to it now."""
    creation_chance: float
    """The share of new rows among all mutations while the table has its size: one in the number of a row's changes."""


def next_of_life(rows: Rows, life: Life[Any], wanted: int, moment: Moment) -> Mutation:
    """Returns the next mutation of a table that is to have about `wanted` rows."""
    random = moment.random
    if random.random() >= _creation_chance(len(rows), wanted, life.creation_chance):
        for _ in range(MOST_PICKS):
            row = rows.nth(random.randrange(len(rows)))
            after = life.go_on(row, moment)
            if after is None:
                return Delete(life.table, row)
            if after != row:
                return Update(life.table, row, after)
    return Insert(life.table, life.begin(rows.next_number, moment))


def grown_rows(life: Life[Any], count: int, basis: Basis, now_us: int) -> Iterator[Insert]:
    """Yields rows 1 to `count`, begun within the three days before `now_us`; the same seed, the same lives."""
    for number in range(1, count + 1):
        random = Random(f"{basis.seed}:initial:{number}")  # noqa: S311  a game, no secret
        yield Insert(life.table, _grown(number, life, random, basis, now_us))


def _grown(number: int, life: Life[R], random: Random, basis: Basis, now_us: int) -> R:
    age_us = random.randrange(YOUNGEST_S * US, OLDEST_S * US)
    steps = random.randrange(MOST_INITIAL_STEPS + 1)
    row = life.begin(number, Moment(random, basis, now_us - age_us))
    for step in range(1, steps + 1):
        after = life.go_on(row, Moment(random, basis, now_us - age_us + age_us * step // (steps + 1)))
        row = row if after is None else after
    return row


def _creation_chance(rows: int, wanted: int, steady: float) -> float:
    """Grows with the rows that are missing, so that the table stays about its size; 1 or more when it is empty."""
    if rows == 0:
        return 1.0
    return steady + (wanted - rows) / (SIZE_TOLERANCE * wanted)
