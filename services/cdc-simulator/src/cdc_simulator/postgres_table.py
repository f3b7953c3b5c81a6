"""A source table in PostgreSQL: its definition, and the statements that read and change its rows; pure.

Columns are named and typed as the contract's fields: a time is a `timestamptz`, tuples are `jsonb`, and the id that the
contract keys rows by is the primary key. The row's number stands beside them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, get_args

from psycopg.types.json import Jsonb

from cdc_simulator.source_table import Row, SourceTable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_SUFFIX = "_us"


class PostgresTable:
    """The SQL of one source table."""

    def __init__(self, table: SourceTable[Any]) -> None:
        self.source = table
        self.name = table.name
        self._ids = tuple(table.virtual)
        columns = list(map(_column, table.types))
        fields = [*columns, *self._ids]
        marks = ", ".join(["%s"] * len(fields))
        others = ", ".join(f"{column} = %s" for column in columns[1:])
        images = ", ".join(map(_image, table.types))
        # All names are a domain's constants.
        self.insert = f"INSERT INTO {self.name} ({', '.join(fields)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
        """A row that others made under the same id is left to them."""
        self.update = f"UPDATE {self.name} SET {others} WHERE number = %s"  # noqa: S608
        self.delete = f"DELETE FROM {self.name} WHERE number = %s"  # noqa: S608
        self.select = f"SELECT json_build_array({images})::text FROM {self.name} WHERE number = %s FOR UPDATE"  # noqa: S608
        """Gives the image of a row, which `source.row_of` reads; nobody else changes the row until the commit."""
        self.numbers = f"SELECT number FROM {self.name} ORDER BY number"  # noqa: S608

    def insert_values(self, row: Row) -> Sequence[Any]:
        """Returns the values for `insert`."""
        return [*self._values(row), *(getattr(row, name) for name in self._ids)]

    def update_values(self, row: Row) -> Sequence[Any]:
        """Returns the values for `update`."""
        number, *others = self._values(row)
        return [*others, number]

    def definitions(self) -> Sequence[str]:
        """Returns the statements that make the table such that its log has the whole row before each change."""
        ids = [f"{name} text {'PRIMARY KEY' if name == self.source.id else 'NOT NULL'}" for name in self._ids]
        columns = [f"{_column(name)} {_type(name, kind)}" for name, kind in self.source.types.items()]
        checks = [f"CHECK ({check})" for check in self.source.checks]
        lines = ",\n    ".join([*ids, *columns, *checks])
        return (
            f"CREATE TABLE {self.name} (\n    {lines}\n)",
            f"ALTER TABLE {self.name} REPLICA IDENTITY FULL",
        )

    def _values(self, row: Row) -> Sequence[Any]:
        return [_value(name, value) for name, value in row._asdict().items()]


def _column(field: str) -> str:
    return field.removesuffix(TIME_SUFFIX)


def _type(field: str, kind: object) -> str:
    if field == "number":
        return "bigint NOT NULL UNIQUE"
    if field.endswith(TIME_SUFFIX):
        return "timestamptz NOT NULL"
    if get_args(kind):
        return "jsonb" if type(None) in get_args(kind) else "jsonb NOT NULL"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return f"text NOT NULL CHECK ({field} IN ({', '.join(map(repr, map(str, kind)))}))"
    if kind is bool:
        return "boolean NOT NULL"
    return "bigint NOT NULL" if kind is int else "text NOT NULL"


def _image(field: str) -> str:
    """Returns SQL for a field's value in the image: null for a time that Python cannot hold."""
    column = _column(field)
    if column == field:
        return column
    is_held = f"{column} BETWEEN '0001-01-02Z' AND '9999-12-30Z'"
    return f"CASE WHEN {is_held} THEN (extract(epoch FROM {column}) * 1000000)::bigint END"


def _value(field: str, value: Any) -> Any:
    if field.endswith(TIME_SUFFIX):
        return EPOCH + timedelta(microseconds=value)
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, tuple):
        return Jsonb(value._asdict() if hasattr(value, "_asdict") else [each._asdict() for each in value])
    return value
