"""What a domain is: source tables, the rows that they begin with, and what happens to them next; pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US

Row = Any
"""A named tuple whose first field is the primary key, the whole number `number`."""

R = TypeVar("R")


class DatabaseParameters(NamedTuple):
    """What a database is made from and keeps for life; each domain says what its customers and items are."""

    seed: int
    rows: int
    customers: int
    items: int


class StepContext(NamedTuple):
    """What the next state of a row may depend on beside the row; the time is in microseconds since 1970 UTC."""

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
        """What happens to the row: `create`, `update` or `delete`."""
        return operation_of(self.before, self.after)


def operation_of(before: Row, after: Row) -> str:
    """Returns the operation that makes one state of a row of another; None is no row."""
    if before is None:
        return "create"
    return "delete" if after is None else "update"


@dataclass(frozen=True)
class SourceTable(Generic[R]):
    """One table, its topic, and how its rows become messages of the contract."""

    name: str
    definition: str
    """The statement that creates it: a column for each field of the row, and others only as virtual ones."""
    row: Any
    """The class of its rows, a named tuple with `number` first."""
    row_id: Callable[[R], str]
    """The primary key as it is known outside of the database."""
    key: Callable[[R], str]
    """The key of the row's changes on Kafka. When it changes with the row, that change gets the new one."""
    message: Callable[[R], Message]
    """The row as the contract has it."""
    change: Callable[..., Message]
    """The class of the contract for a change of it: operation, source, before, after, captured_at."""
    json_fields: frozenset[str] = frozenset()
    """The fields that stand in their column as JSON, null when they are absent."""
    parsers: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Make the values of those fields that do not stand in the row as in their column, JSON parsed."""

    @property
    def topic(self) -> str:
        """The topic that gets its changes."""
        return self.name.replace("_", "-")

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of a row."""
        return cast(tuple[str, ...], self.row._fields)

    def row_of(self, values: Sequence[Any]) -> R:
        """Makes a row of the values of its columns, JSON parsed; None stays None."""
        by_field = dict(zip(self.fields, values, strict=True))
        for name, parse in self.parsers.items():
            if by_field[name] is not None:
                by_field[name] = parse(by_field[name])
        return cast(R, self.row(**by_field))


class Rows(Protocol):
    """The rows of one table as a domain sees them; called for each mutation, so all calls must be fast."""

    next_number: int
    """The primary key of the next new row, unless the domain chooses another: one above all that ever were."""

    def __len__(self) -> int:
        """How many rows there are."""

    def nth(self, index: int) -> Row:
        """Returns the row with so many rows before it in the order of the primary key; `index` is below the length."""

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
    """What happens next to the rows of the tables, which come by name."""


def next_mutation(
    domain: Domain, tables: Mapping[str, Rows], parameters: DatabaseParameters, log_sequence_number: int, now_us: int
) -> Mutation:
    """Returns the mutation with that log sequence number; the seed, the number and the tables decide alone."""
    random = Random(f"{parameters.seed}:{log_sequence_number}")  # noqa: S311  a simulation, no secret
    return domain.next_mutation(tables, StepContext(random, parameters, now_us))


# Cached because the same few stand in most changes, and making them is much of the work of a change; whoever puts one
# into a message copies it, so sharing it is safe.
@lru_cache(maxsize=1024)
def timestamp(us: int) -> Timestamp:
    """Returns the time in microseconds since 1970 UTC as a message, which must not be changed."""
    return Timestamp(seconds=us // SECOND_US, nanos=us % SECOND_US * 1000)
