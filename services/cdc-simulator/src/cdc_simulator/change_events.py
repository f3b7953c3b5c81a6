"""Changes of the log, and the change messages that they become; pure."""

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import Message

from cdc_simulator.domain import operation_of
from cdc_simulator.source_table import Row, SourceTable, timestamp
from statecast.change.v1.change_pb2 import Operation, Source

OPERATIONS = {name: Operation.Value(f"OPERATION_{name.upper()}") for name in ("snapshot", "create", "update", "delete")}


class LoggedChange(NamedTuple):
    """One change as the database's log has it.

    Without `before` it is an insert or a row of the snapshot, without `after` a delete; one of them is always there.
    """

    table: SourceTable[Any]
    lsn: int
    transaction_id: str
    commit_time_us: int
    snapshot: bool
    before: Row | None
    after: Row | None

    @property
    def operation(self) -> str:
        """The operation on the row: `snapshot`, `create`, `update` or `delete`."""
        return "snapshot" if self.snapshot else operation_of(self.before, self.after)

    @property
    def row(self) -> Row:
        """The row as the change leaves it; as it was when it is gone."""
        row = self.after or self.before
        if row is None:
            raise ValueError(f"change {self.lsn} has no row: the log is damaged")
        return row


def change_event(change: LoggedChange, epoch: int, captured_at_us: int) -> Message | None:
    """Returns the change as the contract has it; `captured_at_us` is when it was read from the log.

    Of a table of events it is the row that is new, and None when a row is deleted: an event is never taken back.
    """
    table, before, after = change.table, change.before, change.after
    if table.has_events:
        return table.message(after) if before is None else None
    value: Callable[..., Message] = table.value
    return value(
        operation=OPERATIONS[change.operation],
        source=Source(
            epoch=epoch,
            log_sequence_number=change.lsn,
            transaction_id=change.transaction_id,
            commit_time=timestamp(change.commit_time_us),
            snapshot=change.snapshot,
            table=table.name,
        ),
        before=None if before is None else table.message(before),
        after=None if after is None else table.message(after),
        captured_at=timestamp(captured_at_us),
    )
