"""A change log of one table, made by hand: what the models are tried on."""

from itertools import count
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from drivers.model_changes import primary_key
from statecast.change.v1.change_pb2 import Operation, Source


class History:
    """Writes down what happens to the rows of a table; `changes` is its log."""

    def __init__(self, change: type[Message], table: str, epoch: int = 1) -> None:
        self.changes: list[Any] = []
        self._change: Any = change
        self._table = table
        self._epoch = epoch
        self._sequence = count(1)
        self._rows: dict[str, Any] = {}

    def snapshot(self, row: Any, commit_s: int = 0) -> None:
        """The row is found."""
        self._write(Operation.OPERATION_SNAPSHOT, None, row, commit_s)

    def create(self, row: Any, commit_s: int = 0) -> None:
        """The row is inserted."""
        self._write(Operation.OPERATION_CREATE, None, row, commit_s)

    def update(self, key: str, commit_s: int = 0, **fields: Any) -> None:
        """The row with that primary key gets other values."""
        after = type(self._rows[key])()
        after.CopyFrom(self._rows[key])
        after.MergeFrom(type(after)(**fields))
        self._write(Operation.OPERATION_UPDATE, self._rows[key], after, commit_s)

    def delete(self, key: str, commit_s: int = 0) -> None:
        """The row with that primary key is deleted."""
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
