"""The change log of the database: reads it in order, and forgets what Kafka has acknowledged."""

from collections.abc import Sequence

from cdc_simulator.database import Database
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.row_columns import row_of_image

_READ = (
    "SELECT lsn, transaction_id, commit_time_us, snapshot, before, after FROM change_log"
    " WHERE lsn > ? ORDER BY lsn LIMIT ?"
)


class ChangeLog:
    """What the connector sees of the database. Raises DatabaseError when the file cannot be read or written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ((epoch, orders, acknowledged_lsn),) = database.query("SELECT epoch, orders, acknowledged_lsn FROM incarnation")
        self.epoch: int = epoch
        """The incarnation of the database."""
        self.snapshot_lsn: int = orders
        """The last change of the initial snapshot."""
        self.acknowledged_lsn: int = acknowledged_lsn
        """The cursor: Kafka has every change up to here."""

    def read(self, after_lsn: int, at_most: int) -> Sequence[LoggedChange]:
        """Returns the changes after a log sequence number, in order and without a gap."""
        return [
            LoggedChange(lsn, transaction_id, commit_time_us, bool(snapshot), row_of_image(before), row_of_image(after))
            for lsn, transaction_id, commit_time_us, snapshot, before, after in self._database.query(
                _READ, after_lsn, at_most
            )
        ]

    def acknowledge(self, lsn: int) -> None:
        """Remembers that Kafka has every change up to `lsn`, and forgets those changes."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE incarnation SET acknowledged_lsn = ?", (lsn,))
            connection.execute("DELETE FROM change_log WHERE lsn <= ?", (lsn,))
        self.acknowledged_lsn = lsn
