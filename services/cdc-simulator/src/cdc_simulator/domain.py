"""The definition of a domain: source tables, their initial rows, and the next mutation; pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

from cdc_simulator.source_table import Row, SourceTable

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US


class DatabaseParameters(NamedTuple):
    """The parameters of a database, fixed when it is created; each domain defines its customers and items."""

    seed: int
    rows: int
    customers: int
    items: int


class StepContext(NamedTuple):
    """The inputs of a row's next state besides the row itself; the time is in microseconds since 1970 UTC."""

    random: Random
    parameters: DatabaseParameters
    now_us: int


class Mutation(NamedTuple):
    """One change of a row of the table of that name; the primary key of a row never changes."""

    table: str
    before: Row
    """None for an insert."""
    after: Row
    """None for a delete."""

    @property
    def operation(self) -> str:
        """The operation on the row: `create`, `update` or `delete`."""
        return operation_of(self.before, self.after)


def operation_of(before: Row, after: Row) -> str:
    """Returns the operation that makes one state of a row of another; None is no row."""
    if before is None:
        return "create"
    return "delete" if after is None else "update"


class Rows(Protocol):
    """The rows of one table as a domain sees them; called for each mutation, so all calls must be fast."""

    next_number: int
    """The primary key of the next new row, unless the domain chooses another: one above all that ever were."""

    def __len__(self) -> int:
        """How many rows there are."""

    def nth(self, index: int) -> Row | None:
        """Returns the row with so many rows before it in the order of the primary key; `index` is below the length.

        None when others have removed all of them meanwhile.
        """

    def find(self, number: int) -> Row | None:
        """Returns the row with that primary key; None when there is none."""


@dataclass(frozen=True)
class Domain:
    """Everything that sets one domain apart. Both functions are pure: their arguments decide alone.

    So a simulator that was killed and started again continues with the same mutations. The time decides only times.
    """

    name: str
    tables: tuple[SourceTable[Any], ...]
    initial_rows: Callable[[DatabaseParameters, int], Iterator[Mutation]]
    """Inserts of the rows of a new database, made before the time given in microseconds since 1970 UTC."""
    next_mutation: Callable[[Mapping[str, Rows], StepContext], Mutation]
    """The next mutation of the rows of the tables, which come by name."""


def next_mutation(
    domain: Domain, tables: Mapping[str, Rows], parameters: DatabaseParameters, log_sequence_number: int, now_us: int
) -> Mutation:
    """Returns the mutation with that log sequence number; the seed, the number and the tables decide alone."""
    random = Random(f"{parameters.seed}:{log_sequence_number}")  # noqa: S311  a simulation, no secret
    return domain.next_mutation(tables, StepContext(random, parameters, now_us))
