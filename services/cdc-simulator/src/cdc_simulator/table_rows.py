"""The rows of one table on disk."""

from bisect import bisect_left, insort
from typing import Any

from cdc_simulator.database import Database
from cdc_simulator.domain import SourceTable
from cdc_simulator.mutation import Delete, Insert, Mutation, Row, Update
from cdc_simulator.table_columns import TableColumns


class TableRows:
    """The rows on disk and, in memory, their primary keys in order, so that the n-th row is found at once."""

    def __init__(self, database: Database, table: SourceTable[Any]) -> None:
        self._database = database
        self._table = table
        self._columns = TableColumns(table)
        self._numbers: list[int] = []
        self._next_number = 1

    @property
    def next_number(self) -> int:
        """As Rows has it."""
        return self._next_number

    def __len__(self) -> int:
        return len(self._numbers)

    def nth(self, index: int) -> Row:
        """As Rows has it."""
        return self.find(self._numbers[index])

    def find(self, number: int) -> Row | None:
        """As Rows has it."""
        columns = self._database.connection.execute(self._columns.select, (number,)).fetchone()
        return None if columns is None else self._columns.row_of_columns(columns)

    def apply(self, mutation: Mutation) -> None:
        """Makes one change of this table; only within a transaction."""
        execute = self._database.connection.execute
        match mutation:
            case Insert(_, after):
                execute(self._columns.insert, self._columns.insert_values(after))
                insort(self._numbers, after.number)
                self._next_number = max(self._next_number, after.number + 1)
            case Update(_, _, after):
                execute(self._columns.update, self._columns.update_values(after))
            case Delete(_, before):
                execute(self._columns.delete, (before.number,))
                del self._numbers[bisect_left(self._numbers, before.number)]

    def read_keys(self, highest: int) -> None:
        """Learns the primary keys from the disk; `highest` is the highest that ever was."""
        select = f"SELECT number FROM {self._table.name} ORDER BY number"  # noqa: S608  a domain's constant
        self._numbers = [number for (number,) in self._database.query(select)]
        self._next_number = highest + 1
