"""Decides between stores and invoices; pure."""

from collections.abc import Iterator, Mapping

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domain import Rows
from cdc_simulator.domains.invoices.invoice_life import INVOICE_LIFE
from cdc_simulator.domains.invoices.store_life import STORES, first_store, rename
from cdc_simulator.life import grown_rows, next_of_life
from cdc_simulator.mutation import Insert, Mutation, Update

STORES_TABLE, INVOICES_TABLE = "stores", "invoices"
RENAMING_CHANCE = 0.01


def initial_rows(basis: Basis, now_us: int) -> Iterator[Insert]:
    """Yields all stores, then the invoices."""
    for number in range(1, STORES + 1):
        yield Insert(STORES_TABLE, first_store(number))
    yield from grown_rows(INVOICE_LIFE, basis.rows, basis, now_us)


def next_mutation(tables: Mapping[str, Rows], moment: Moment) -> Mutation:
    """Returns what happens to an invoice or, seldom, to a store."""
    if moment.random.random() < RENAMING_CHANCE:
        store = tables[STORES_TABLE].nth(moment.random.randrange(STORES))
        return Update(STORES_TABLE, store, rename(store, moment.random))
    return next_of_life(tables[INVOICES_TABLE], INVOICE_LIFE, moment.basis.rows, moment)
