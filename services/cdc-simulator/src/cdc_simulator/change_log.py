"""The change log of the database: reads it in order, and forgets what Kafka has acknowledged."""

from collections.abc import Sequence

from cdc_simulator.change_events import LoggedChange
from cdc_simulator.database import Database
from cdc_simulator.domain import Domain
from cdc_simulator.schema import TableColumns

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
        changes = []
        logged = self._database.query(_READ, after_lsn, at_most)
        for name, before, after, lsn, transaction_id, commit_us, snapshot in logged:
            table, row_of = self._tables[name]
            rows = row_of(before), row_of(after)
            changes.append(LoggedChange(table, lsn, transaction_id, commit_us, bool(snapshot), *rows))
        return changes

    def acknowledge(self, lsn: int) -> None:
        """Remembers that Kafka has every change up to `lsn`, and forgets those changes."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE incarnation SET acknowledged_lsn = ?", (lsn,))
            connection.execute("DELETE FROM change_log WHERE lsn <= ?", (lsn,))
        self.acknowledged_lsn = lsn
