"""What a domain is: source tables, the rows that they begin with, and what happens to them next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from google.protobuf.message import Message

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.mutation import Insert, Mutation, Row

R = TypeVar("R")


@dataclass(frozen=True)
class SourceTable(Generic[R]):
    """One table, its topic, and how its rows become messages of the contract."""

    name: str
    topic: str
    """The topic that gets its changes."""
    definition: str
    """The statement that creates it: a column for each field of the row, and others only as virtual ones."""
    row: Any
    """The class of its rows, a named tuple with `number` first."""
    row_id: Callable[[R], str]
    """The primary key as the rest of the world knows it."""
    key: Callable[[R], str]
    """The key of the row's changes on Kafka. When it changes with the row, that change gets the new one."""
    message: Callable[[R], Message]
    """The row as the contract has it."""
    change: Callable[..., Message]
    """The class of the contract for a change of it: operation, source, before, after, captured_at."""
    json_fields: frozenset[str] = field(default_factory=frozenset)
    """The fields that stand in their column as JSON, null when they are absent."""
    parse: Callable[[Sequence[Any]], R] | None = None
    """Makes a row of the values of its fields, JSON parsed, where they do not stand in the row as they are."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of a row."""
        return cast(tuple[str, ...], self.row._fields)

    def row_of(self, values: Sequence[Any]) -> R:
        """Makes a row of the values of its fields, JSON parsed."""
        return cast(R, self.row._make(values) if self.parse is None else self.parse(values))


class Rows(Protocol):
    """The rows of one table as a workload sees them; called for each mutation, so all calls must be fast."""

    @property
    def next_number(self) -> int:
        """The primary key of the next new row, unless the workload chooses another: one above all that ever were."""

    def __len__(self) -> int:
        """How many rows there are."""

    def nth(self, index: int) -> Row:
        """Returns the row with so many rows before it in the order of the primary key; `index` is below the length."""

    def find(self, number: int) -> Row | None:
        """Returns the row with that primary key; absent when there is none."""


@dataclass(frozen=True)
class Domain:
    """Everything that sets one domain apart. Both functions are pure: their arguments decide alone.

    So a database that was killed and started again goes on with the very mutations that it would have made. The time
    may decide nothing but times.
    """

    name: str
    tables: tuple[SourceTable[Any], ...]
    initial_rows: Callable[[Basis, int], Iterator[Insert]]
    """The rows that a new database begins with, made before the time given in microseconds since 1970 UTC."""
    next_mutation: Callable[[Mapping[str, Rows], Moment], Mutation]
    """What happens next to the rows of the tables, which come by name."""
