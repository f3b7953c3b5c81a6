"""The tables of a domain, which log their changes: applies mutations in transactions, and reads the log in order."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

from cdc_simulator.change_events import LoggedChange
from cdc_simulator.database import Database
from cdc_simulator.domain import Domain, Mutation, Rows
from cdc_simulator.source_table import Row, SourceTable


class TableRows(Rows):
    """The rows on disk and, in memory, their primary keys in order, so that the n-th row is found at once."""

    def __init__(self, database: Database, table: SourceTable[Any], highest_number: int) -> None:
        """`highest_number` is the highest primary key that ever was."""
        self._database = database
        self._table = table
        select = f"SELECT number FROM {table.name} ORDER BY number"  # noqa: S608  a domain's constant
        self._numbers: list[int] = [number for (number,) in database.query(select)]
        self.next_number = highest_number + 1

    @override
    def __len__(self) -> int:
        return len(self._numbers)

    @override
    def nth(self, index: int) -> Row:
        return self.find(self._numbers[index])

    @override
    def find(self, number: int) -> Row | None:
        images = self._database.connection.execute(self._table.select, (number,)).fetchone()
        return None if images is None else self._table.row_of(*images)

    def apply(self, mutation: Mutation) -> None:
        """Makes one change of this table; only within a transaction."""
        execute = self._database.connection.execute
        before, after = mutation.before, mutation.after
        if before is None:
            execute(self._table.insert, self._table.insert_values(after))
            insort(self._numbers, after.number)
            self.next_number = max(self.next_number, after.number + 1)
        elif after is None:
            execute(self._table.delete, (before.number,))
            del self._numbers[bisect_left(self._numbers, before.number)]
        else:
            execute(self._table.update, self._table.update_values(after))


class Tables:
    """All tables of an open database."""

    rows: dict[str, TableRows]
    """By the name of the table."""
    log_sequence_number: int
    """That of the last change."""

    def __init__(self, database: Database, domain: Domain) -> None:
        self._database = database
        self._domain = domain
        self._read_keys()

    @contextmanager
    def transaction(self, now_us: int) -> Iterator[int]:
        """Commits the block's changes, and yields the commit time: `now_us`, or the last one if that is later.

        Rolls back when the block raises. Raises DatabaseError when the file cannot be written.
        """
        try:
            with self._database.transaction() as connection:
                (last_us,) = connection.execute("SELECT commit_time_us FROM incarnation").fetchone()
                commit_time_us = max(now_us, last_us)
                connection.execute(
                    "UPDATE incarnation SET transaction_id = ?, commit_time_us = ?",
                    (f"tx-{self.log_sequence_number + 1}", commit_time_us),
                )
                yield commit_time_us
        except BaseException:
            self._read_keys()
            raise

    def apply(self, mutation: Mutation) -> None:
        """Makes one change, which gets the next log sequence number; only within `transaction`."""
        self.rows[mutation.table].apply(mutation)
        self.log_sequence_number += 1

    def _read_keys(self) -> None:
        highest = dict(self._database.query("SELECT name, seq FROM sqlite_sequence"))
        tables = self._domain.tables
        self.rows = {table.name: TableRows(self._database, table, highest.get(table.name, 0)) for table in tables}
        self.log_sequence_number = highest["change_log"]


class ChangeLog:
    """The connector's view of the database. Raises DatabaseError when the file cannot be read or written."""

    epoch: int
    """The incarnation of the database."""
    snapshot_lsn: int
    """The last change of the initial snapshot."""
    acknowledged_lsn: int
    """The cursor: Kafka has every change up to here."""

    def __init__(self, database: Database, domain: Domain) -> None:
        self._database = database
        self._tables = {table.name: table for table in domain.tables}
        facts = database.query("SELECT epoch, snapshot_lsn, acknowledged_lsn FROM incarnation")
        ((self.epoch, self.snapshot_lsn, self.acknowledged_lsn),) = facts

    def read(self, after_lsn: int, at_most: int) -> Sequence[LoggedChange]:
        """Returns the changes of all tables after a log sequence number, in order and without a gap."""
        columns = "source_table, lsn, transaction_id, commit_time_us, snapshot, before, after"
        select = f"SELECT {columns} FROM change_log WHERE lsn > ? ORDER BY lsn LIMIT ?"  # noqa: S608  constants
        logged = self._database.query(select, after_lsn, at_most)
        return [
            LoggedChange(table, lsn, transaction, commit_us, bool(snapshot), table.row_of(before), table.row_of(after))
            for name, lsn, transaction, commit_us, snapshot, before, after in logged
            for table in [self._tables[name]]
        ]

    def acknowledge(self, lsn: int) -> None:
        """Remembers that Kafka has every change up to `lsn`, and forgets those changes."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE incarnation SET acknowledged_lsn = ?", (lsn,))
            connection.execute("DELETE FROM change_log WHERE lsn <= ?", (lsn,))
        self.acknowledged_lsn = lsn
