"""What is on disk: the source tables of a domain, the triggers on them, and the log that the triggers write; pure.

The triggers write each change of a source table to `change_log`, within the transaction that makes it, so the log can
neither miss a change nor hold one that did not happen. SQLite's AUTOINCREMENT gives log sequence numbers without gaps,
and never one twice, even after the log was pruned.
"""

import json
from collections.abc import Sequence
from typing import Any

from cdc_simulator.domain import Row, SourceTable

FORMAT_VERSION = 2

LOG_TABLES = """
CREATE TABLE change_log (
    lsn INTEGER PRIMARY KEY AUTOINCREMENT,
    source_table TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    commit_time_us INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    before TEXT, -- the row as a JSON array in the order of the table's columns but virtual ones; null for an insert
    after TEXT   -- likewise; null for a delete
);
CREATE TABLE incarnation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,             -- unix milliseconds when the database was made; higher for a later one
    domain TEXT NOT NULL,
    seed INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    customers INTEGER NOT NULL,
    items INTEGER NOT NULL,
    transaction_id TEXT NOT NULL,       -- of the transaction that is open, or was last
    commit_time_us INTEGER NOT NULL,    -- likewise; never goes backwards
    snapshot_lsn INTEGER NOT NULL,      -- the last change of the initial snapshot
    acknowledged_lsn INTEGER NOT NULL   -- Kafka has every change up to here
);
"""
START = "INSERT INTO incarnation VALUES (1, ?, ?, ?, ?, ?, ?, 'tx-1', ?, 0, 0)"
END_SNAPSHOT = "UPDATE incarnation SET snapshot_lsn = (SELECT max(lsn) FROM change_log)"


class TableColumns:
    """The statements for one table, and the columns that stand for its rows."""

    def __init__(self, table: SourceTable[Any]) -> None:
        name, fields = table.name, table.fields
        columns, marks = ", ".join(fields), ", ".join("?" * len(fields))
        assignments = ", ".join(f"{field} = ?" for field in fields[1:])
        self.insert = f"INSERT INTO {name} ({columns}) VALUES ({marks})"  # noqa: S608  built from a domain's constants
        self.select = f"SELECT {columns} FROM {name} WHERE number = ?"  # noqa: S608  as above
        self.update = f"UPDATE {name} SET {assignments} WHERE number = ?"  # noqa: S608  as above
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
        """Returns the row of an image in the change log; None without one."""
        return None if image is None else self._table.row_of(json.loads(image))


def take_snapshot(table: SourceTable[Any]) -> str:
    """Returns the statement that logs all rows of the table as they stand."""
    return f"""
INSERT INTO change_log (source_table, transaction_id, commit_time_us, snapshot, before, after)
SELECT '{table.name}', transaction_id, commit_time_us, 1, NULL, {_image(table, table.name)}
FROM {table.name}, incarnation ORDER BY number
"""  # noqa: S608  built from a domain's constants


def triggers(table: SourceTable[Any]) -> str:
    """Returns the statements that create the table's triggers."""
    old, new = _image(table, "OLD"), _image(table, "NEW")
    return "".join(
        f"""
CREATE TRIGGER log_{event}_of_{table.name} AFTER {event} ON {table.name} BEGIN
    INSERT INTO change_log (source_table, transaction_id, commit_time_us, snapshot, before, after)
    SELECT '{table.name}', transaction_id, commit_time_us, 0, {before}, {after} FROM incarnation;
END;
"""  # noqa: S608  as above
        for event, before, after in (("INSERT", "NULL", new), ("UPDATE", old, new), ("DELETE", old, "NULL"))
    )


def _image(table: SourceTable[Any], row: str) -> str:
    columns = [f"json({row}.{field})" if field in table.json_fields else f"{row}.{field}" for field in table.fields]
    return f"json_array({', '.join(columns)})"
