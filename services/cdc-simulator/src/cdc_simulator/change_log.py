"""The change log of the database: reads it in order, and forgets what Kafka has acknowledged."""

from collections.abc import Sequence

from cdc_simulator.database import Database
from cdc_simulator.domain import Domain
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.table_columns import TableColumns

_READ = (
    "SELECT source_table, before, after, lsn, transaction_id, commit_time_us, snapshot FROM change_log"
    " WHERE lsn > ? ORDER BY lsn LIMIT ?"
)


class ChangeLog:
    """What the connector sees of the database. Raises DatabaseError when the file cannot be read or written."""

    def __init__(self, database: Database, domain: Domain) -> None:
        self._database = database
        self._tables = {table.name: (table, TableColumns(table).row_of_image) for table in domain.tables}
        ((epoch, snapshot_lsn, acknowledged_lsn),) = database.query(
            "SELECT epoch, snapshot_lsn, acknowledged_lsn FROM incarnation"
        )
        self.epoch: int = epoch
        """The incarnation of the database."""
        self.snapshot_lsn: int = snapshot_lsn
        """The last change of the initial snapshot."""
        self.acknowledged_lsn: int = acknowledged_lsn
        """The cursor: Kafka has every change up to here."""

    def read(self, after_lsn: int, at_most: int) -> Sequence[LoggedChange]:
        """Returns the changes of all tables after a log sequence number, in order and without a gap."""
        return [
            self._change(name, before, after, *place)
            for name, before, after, *place in self._database.query(_READ, after_lsn, at_most)
        ]

    def acknowledge(self, lsn: int) -> None:
        """Remembers that Kafka has every change up to `lsn`, and forgets those changes."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE incarnation SET acknowledged_lsn = ?", (lsn,))
            connection.execute("DELETE FROM change_log WHERE lsn <= ?", (lsn,))
        self.acknowledged_lsn = lsn

    def _change(
        self,
        name: str,
        before: str | None,
        after: str | None,
        lsn: int,
        transaction_id: str,
        commit_time_us: int,
        snapshot: int,
    ) -> LoggedChange:
        table, row_of = self._tables[name]
        return LoggedChange(table, lsn, transaction_id, commit_time_us, bool(snapshot), row_of(before), row_of(after))
