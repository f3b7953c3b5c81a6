"""Change logs of tables: read in order and each change once, and written by hand to try the models on."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.bookings.v1.booking_pb2 import BookingChange
from statecast.change.v1.change_pb2 import Operation, Source
from statecast.odds.v1.market_pb2 import MarketChange
from statecast.odds.v1.match_pb2 import MatchChange
from statecast.orders.v1.order_pb2 import OrderChange
from statecast.portfolio.v1.open_position_pb2 import OpenPositionChange
from statecast.sales.v1.store_pb2 import StoreChange

Change = BookingChange | MarketChange | MatchChange | OpenPositionChange | OrderChange | StoreChange
"""A change of any table."""


def row_of(change: Change) -> Any:
    """Returns the row after the change, or the row that it deleted."""
    return change.after if change.HasField("after") else change.before


def primary_key(row: Any) -> str:
    """Returns the value of the row's first field, which is its primary key in every table."""
    return str(getattr(row, row.DESCRIPTOR.fields_by_number[1].name))


def ordered(changes: Iterable[Change]) -> list[Change]:
    """Returns the changes without duplicates, in the order of epoch and log sequence number."""
    unique = {(*_place(change), change.source.table, primary_key(row_of(change))): change for change in changes}
    return [unique[place] for place in sorted(unique)]


def rows_after(changes: Iterable[Change]) -> list[Any]:
    """Returns the rows of one table after all changes."""
    rows: dict[str, Any] = {}
    for change in ordered(changes):
        if change.HasField("after"):
            rows[primary_key(change.after)] = change.after
        else:
            rows.pop(primary_key(change.before), None)
    return list(rows.values())


def _place(change: Change) -> tuple[int, int]:
    return change.source.epoch, change.source.log_sequence_number


class History:
    """A writer of the changes to the rows of a table; `changes` is its log."""

    def __init__(self, change: type[Message], table: str, epoch: int = 1) -> None:
        self.changes: list[Any] = []
        self._change: Any = change
        self._table = table
        self._epoch = epoch
        self._sequence = count(1)
        self._rows: dict[str, Any] = {}

    def snapshot(self, row: Any, commit_s: int = 0) -> None:
        """Adds the snapshot of a row."""
        self._write(Operation.OPERATION_SNAPSHOT, None, row, commit_s)

    def create(self, row: Any, commit_s: int = 0) -> None:
        """Adds the insert of a row."""
        self._write(Operation.OPERATION_CREATE, None, row, commit_s)

    def update(self, key: str, commit_s: int = 0, **fields: Any) -> None:
        """Adds an update of the row with that primary key."""
        after = type(self._rows[key])()
        after.CopyFrom(self._rows[key])
        after.MergeFrom(type(after)(**fields))
        self._write(Operation.OPERATION_UPDATE, self._rows[key], after, commit_s)

    def delete(self, key: str, commit_s: int = 0) -> None:
        """Adds the delete of the row with that primary key."""
        self._write(Operation.OPERATION_DELETE, self._rows[key], None, commit_s)

    def _write(self, operation: "Operation.ValueType", before: Any, after: Any, commit_s: int) -> None:
        source = Source(
            epoch=self._epoch,
            log_sequence_number=next(self._sequence),
            commit_time=Timestamp(seconds=commit_s),
            table=self._table,
        )
        self.changes.append(self._change(operation=operation, source=source, before=before, after=after))
        key = primary_key(after or before)
        if after is None:
            del self._rows[key]
        else:
            self._rows[key] = after
