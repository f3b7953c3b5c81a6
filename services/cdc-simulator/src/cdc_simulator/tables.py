"""The tables of a domain: applies mutations in transactions, while their triggers log them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cdc_simulator.database import Database
from cdc_simulator.domain import Domain, Rows
from cdc_simulator.mutation import Mutation
from cdc_simulator.table_rows import TableRows


class Tables:
    """All tables of an open database."""

    def __init__(self, database: Database, domain: Domain) -> None:
        self._database = database
        self._rows = {table.name: TableRows(database, table) for table in domain.tables}
        self.log_sequence_number: int
        """That of the last change."""
        self._read_keys()

    @property
    def rows(self) -> Mapping[str, Rows]:
        """The rows of each table, by its name."""
        return self._rows

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
        self._rows[mutation.table].apply(mutation)
        self.log_sequence_number += 1

    def _read_keys(self) -> None:
        highest = dict(self._database.query("SELECT name, seq FROM sqlite_sequence"))
        for name, rows in self._rows.items():
            rows.read_keys(highest.get(name, 0))
        self.log_sequence_number = highest["change_log"]
