"""The tables of a domain: applies mutations in transactions, while their triggers log them."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

from cdc_simulator.database import Database
from cdc_simulator.domain import Domain, Mutation, Row, Rows, SourceTable
from cdc_simulator.schema import TableColumns


class TableRows(Rows):
    """The rows on disk and, in memory, their primary keys in order, so that the n-th row is found at once."""

    def __init__(self, database: Database, table: SourceTable[Any]) -> None:
        self._database = database
        self._table = table
        self._columns = TableColumns(table)
        self._numbers: list[int] = []
        self.next_number = 1

    @override
    def __len__(self) -> int:
        return len(self._numbers)

    @override
    def nth(self, index: int) -> Row:
        return self.find(self._numbers[index])

    @override
    def find(self, number: int) -> Row | None:
        columns = self._database.connection.execute(self._columns.select, (number,)).fetchone()
        return None if columns is None else self._columns.row_of_columns(columns)

    def apply(self, mutation: Mutation) -> None:
        """Makes one change of this table; only within a transaction."""
        execute = self._database.connection.execute
        before, after = mutation.before, mutation.after
        if before is None:
            execute(self._columns.insert, self._columns.insert_values(after))
            insort(self._numbers, after.number)
            self.next_number = max(self.next_number, after.number + 1)
        elif after is None:
            execute(self._columns.delete, (before.number,))
            del self._numbers[bisect_left(self._numbers, before.number)]
        else:
            execute(self._columns.update, self._columns.update_values(after))

    def read_keys(self, highest: int) -> None:
        """Reads the primary keys from the disk; `highest` is the highest that ever was."""
        select = f"SELECT number FROM {self._table.name} ORDER BY number"  # noqa: S608  a domain's constant
        self._numbers = [number for (number,) in self._database.query(select)]
        self.next_number = highest + 1


class Tables:
    """All tables of an open database."""

    def __init__(self, database: Database, domain: Domain) -> None:
        self._database = database
        self.rows = {table.name: TableRows(database, table) for table in domain.tables}
        """By the name of the table."""
        self.log_sequence_number: int
        """That of the last change."""
        self._read_keys()

    @contextmanager
    def transaction(self, now_us: int) -> Iterator[int]:
        """Commits what is applied in the block, and yields the commit time: `now_us`, or the last one if that is later.

        When the block raises, nothing has happened. Raises DatabaseError when the file cannot be written.
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
        for name, rows in self.rows.items():
            rows.read_keys(highest.get(name, 0))
        self.log_sequence_number = highest["change_log"]
