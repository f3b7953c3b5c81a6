"""What the models make of a change log: its changes in order, each once, and the rows that they leave."""

from collections.abc import Iterable
from typing import Any, Protocol

from statecast.change.v1.change_pb2 import Operation, Source


class Change(Protocol):
    """A change of any table: OrderChange, BookingChange and so on."""

    @property
    def operation(self) -> "Operation.ValueType":
        """What happened to the row."""

    @property
    def source(self) -> Source:
        """Where in the log, and of which table."""

    @property
    def before(self) -> Any:
        """The row before."""

    @property
    def after(self) -> Any:
        """The row after."""

    def HasField(self, name: Any) -> bool:  # noqa: N802  as protobuf has it
        """Whether the row before or after is there."""


def row_of(change: Change) -> Any:
    """The row after the change, or the row that it deleted."""
    return change.after if change.HasField("after") else change.before


def primary_key(row: Any) -> str:
    """The value of the row's first field, which is its primary key in every table."""
    return str(getattr(row, row.DESCRIPTOR.fields_by_number[1].name))


def ordered(changes: Iterable[Change]) -> list[Change]:
    """The changes in the order of epoch and log sequence number, however often and in whatever order they come."""
    unique = {(*_place(change), change.source.table, primary_key(row_of(change))): change for change in changes}
    return [unique[place] for place in sorted(unique)]


def rows_after(changes: Iterable[Change]) -> list[Any]:
    """The rows of one table after all changes."""
    rows: dict[str, Any] = {}
    for change in ordered(changes):
        if change.HasField("after"):
            rows[primary_key(change.after)] = change.after
        else:
            rows.pop(primary_key(change.before), None)
    return list(rows.values())


def written(changes: Iterable[Change], *operations: "Operation.ValueType") -> list[Any]:
    """The row after each change with one of the operations, in order: what a route passes on."""
    return [change.after for change in ordered(changes) if change.operation in operations]


def _place(change: Change) -> tuple[int, int]:
    return change.source.epoch, change.source.log_sequence_number
