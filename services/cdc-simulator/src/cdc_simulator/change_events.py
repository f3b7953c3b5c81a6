"""Turns logged changes into the change messages of their tables; pure."""

from google.protobuf.message import Message

from cdc_simulator.domain import SourceTable
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.mutation import Row
from cdc_simulator.timestamps import timestamp
from statecast.change.v1.change_pb2 import Operation, Source

OPERATIONS = {
    "snapshot": Operation.OPERATION_SNAPSHOT,
    "create": Operation.OPERATION_CREATE,
    "update": Operation.OPERATION_UPDATE,
    "delete": Operation.OPERATION_DELETE,
}


def change_event(change: LoggedChange, epoch: int, captured_at_us: int) -> Message:
    """Returns the change as the contract has it; `captured_at_us` is when it was read from the log."""
    return change.table.change(
        operation=OPERATIONS[change.operation],
        source=Source(
            epoch=epoch,
            log_sequence_number=change.lsn,
            transaction_id=change.transaction_id,
            commit_time=timestamp(change.commit_time_us),
            snapshot=change.snapshot,
            table=change.table.name,
        ),
        before=_message(change.table, change.before),
        after=_message(change.table, change.after),
        captured_at=timestamp(captured_at_us),
    )


def _message(table: SourceTable[Row], row: Row | None) -> Message | None:
    return None if row is None else table.message(row)
