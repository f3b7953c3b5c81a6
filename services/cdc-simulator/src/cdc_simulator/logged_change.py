"""One change as the database's log has it."""

from typing import Any, NamedTuple

from cdc_simulator.domain import SourceTable
from cdc_simulator.mutation import Row


class LoggedChange(NamedTuple):
    """Absent `before` is an insert or a row of the snapshot, absent `after` a delete; both are never absent."""

    table: SourceTable[Any]
    lsn: int
    transaction_id: str
    commit_time_us: int
    snapshot: bool
    before: Row | None
    after: Row | None

    @property
    def operation(self) -> str:
        """What happened to the row: `snapshot`, `create`, `update` or `delete`."""
        if self.snapshot:
            return "snapshot"
        if self.before is None:
            return "create"
        return "update" if self.after is not None else "delete"

    @property
    def row(self) -> Row:
        """The row as the change leaves it; as it was when it is gone."""
        row = self.after or self.before
        if row is None:
            raise ValueError(f"change {self.lsn} has no row: the log is damaged")
        return row

    @property
    def row_id(self) -> str:
        """The id of the row that changed."""
        return self.table.row_id(self.row)

    @property
    def key(self) -> str:
        """The change's key on Kafka: the new row's, or that of the row that is gone."""
        return self.table.key(self.row)
