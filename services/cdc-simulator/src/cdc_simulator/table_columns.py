"""Turns rows into the columns of their table and back; pure."""

import json
from collections.abc import Sequence
from typing import Any

from cdc_simulator.domain import SourceTable
from cdc_simulator.mutation import Row


class TableColumns:
    """The statements for one table, and what goes into them."""

    def __init__(self, table: SourceTable[Any]) -> None:
        name, fields = table.name, table.fields
        columns, marks = ", ".join(fields), ", ".join("?" * len(fields))
        settings = ", ".join(f"{field} = ?" for field in fields[1:])
        self.insert = f"INSERT INTO {name} ({columns}) VALUES ({marks})"  # noqa: S608  built from a domain's constants
        self.select = f"SELECT {columns} FROM {name} WHERE number = ?"  # noqa: S608  as above
        self.update = f"UPDATE {name} SET {settings} WHERE number = ?"  # noqa: S608  as above
        self.delete = f"DELETE FROM {name} WHERE number = ?"  # noqa: S608  as above
        self._table = table
        self._json = [fields.index(field) for field in table.json_fields]

    def insert_values(self, row: Row) -> Sequence[Any]:
        """Returns the values for `insert`."""
        values = list(row)
        for index in self._json:
            if values[index] is not None:
                values[index] = json.dumps(values[index])
        return values

    def update_values(self, row: Row) -> Sequence[Any]:
        """Returns the values for `update`."""
        number, *others = self.insert_values(row)
        return (*others, number)

    def row_of_columns(self, columns: Sequence[Any]) -> Row:
        """Returns the row of what `select` answered."""
        values = list(columns)
        for index in self._json:
            if values[index] is not None:
                values[index] = json.loads(values[index])
        return self._table.row_of(values)

    def row_of_image(self, image: str | None) -> Row | None:
        """Returns the row of an image in the change log; absent for an absent one."""
        return None if image is None else self._table.row_of(json.loads(image))
