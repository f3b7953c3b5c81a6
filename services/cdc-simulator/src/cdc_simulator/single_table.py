"""Makes a domain of one table whose rows live on their own; pure."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domain import Domain, Rows, SourceTable
from cdc_simulator.life import Life, grown_rows, next_of_life
from cdc_simulator.mutation import Insert, Mutation

R = TypeVar("R")


def single_table_domain(name: str, table: SourceTable[R], life: Life[R]) -> Domain:
    """Returns a domain whose table begins with the basis' number of rows and keeps about as many."""

    def initial_rows(basis: Basis, now_us: int) -> Iterator[Insert]:
        return grown_rows(life, basis.rows, basis, now_us)

    def next_mutation(tables: Mapping[str, Rows], moment: Moment) -> Mutation:
        return next_of_life(tables[table.name], life, moment.basis.rows, moment)

    return Domain(name, (table,), initial_rows, next_mutation)
