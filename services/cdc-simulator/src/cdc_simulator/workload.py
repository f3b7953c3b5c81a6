"""Decides what happens to the table next; pure: the seed, the log sequence number and the table decide alone.

So a database that was killed and started again goes on with the very mutations that it would have made.
"""

from random import Random
from typing import NamedTuple, Protocol

from cdc_simulator.life_cycle import Moment, advance, is_finished, place
from cdc_simulator.order_row import OrderRow, Shop

MOST_PICKS = 20
DELETION_CHANCE = 0.5
STEADY_CREATION_CHANCE = 0.125  # about eight changes make up the life of an order
SIZE_TOLERANCE = 0.2


class Table(Protocol):
    """The table as the workload sees it; called for each mutation, so both calls must be fast."""

    next_number: int  # the primary key of the next new row

    def __len__(self) -> int:
        """How many rows there are."""

    def nth(self, index: int) -> OrderRow:
        """Returns the row with so many rows before it in the order of the primary key; `index` is below the length."""


class Insert(NamedTuple):
    """A row that is new."""

    after: OrderRow

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "create"


class Update(NamedTuple):
    """A row that changes; customer_id and placed_at never do."""

    before: OrderRow
    after: OrderRow

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "update"


class Delete(NamedTuple):
    """A row that goes."""

    before: OrderRow

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "delete"


Mutation = Insert | Update | Delete


def next_mutation(table: Table, shop: Shop, log_sequence_number: int, now_us: int) -> Mutation:
    """Returns the mutation with that log sequence number: a row's legal step, a new row, or a finished row's end."""
    random = Random(f"{shop.seed}:{log_sequence_number}")  # noqa: S311  a game, no secret
    moment = Moment(random, shop, now_us)
    if random.random() >= _creation_chance(len(table), shop.orders):
        for _ in range(MOST_PICKS):
            row = table.nth(random.randrange(len(table)))
            if not is_finished(row):
                return Update(row, advance(row, moment))
            if random.random() < DELETION_CHANCE:
                return Delete(row)
    return Insert(place(table.next_number, moment))


def _creation_chance(rows: int, wanted: int) -> float:
    """Grows with the rows that are missing, so that the table stays about its size; 1 or more when it is empty."""
    if rows == 0:
        return 1.0
    return STEADY_CREATION_CHANCE + (wanted - rows) / (SIZE_TOLERANCE * wanted)
