"""One change as the database's log has it."""

from typing import NamedTuple

from cdc_simulator.order_row import OrderRow


class LoggedChange(NamedTuple):
    """Absent `before` is an insert or a row of the snapshot, absent `after` a delete; both are never absent."""

    lsn: int
    transaction_id: str
    commit_time_us: int
    snapshot: bool
    before: OrderRow | None
    after: OrderRow | None

    @property
    def operation(self) -> str:
        """What happened to the row: `snapshot`, `create`, `update` or `delete`."""
        if self.snapshot:
            return "snapshot"
        if self.before is None:
            return "create"
        return "update" if self.after is not None else "delete"

    @property
    def order_id(self) -> str:
        """The id of the order that changed."""
        row = self.after or self.before
        if row is None:
            raise ValueError(f"change {self.lsn} has no row: the log is damaged")
        return row.order_id
