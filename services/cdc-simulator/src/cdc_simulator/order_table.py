"""The table `orders`: applies mutations in transactions, while its triggers log them."""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_simulator.database import Database
from cdc_simulator.order_row import OrderRow
from cdc_simulator.row_columns import DELETE, INSERT, SELECT, UPDATE, insert_values, row_of_columns, update_values
from cdc_simulator.workload import Delete, Insert, Mutation, Update


class OrderTable:
    """The rows on disk and, in memory, their primary keys in order, so that the n-th row is found at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: list[int]
        self.next_number: int
        self.log_sequence_number: int
        """That of the last change."""
        self._read_keys()

    def __len__(self) -> int:
        return len(self._numbers)

    def nth(self, index: int) -> OrderRow:
        """Returns the row with so many rows before it in the order of the primary key."""
        columns = self._database.connection.execute(SELECT, (self._numbers[index],)).fetchone()
        return row_of_columns(columns)

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
        match mutation:
            case Insert(after):
                self._insert(after)
            case Update(_, after):
                self._database.connection.execute(UPDATE, update_values(after))
            case Delete(before):
                self._delete(before)
        self.log_sequence_number += 1

    def _insert(self, row: OrderRow) -> None:
        self._database.connection.execute(INSERT, insert_values(row))
        self._numbers.append(row.number)
        self.next_number = row.number + 1

    def _delete(self, row: OrderRow) -> None:
        self._database.connection.execute(DELETE, (row.number,))
        del self._numbers[bisect_left(self._numbers, row.number)]

    def _read_keys(self) -> None:
        self._numbers = [number for (number,) in self._database.query("SELECT number FROM orders ORDER BY number")]
        sequences = dict(self._database.query("SELECT name, seq FROM sqlite_sequence"))
        self.next_number = sequences["orders"] + 1
        self.log_sequence_number = sequences["change_log"]
