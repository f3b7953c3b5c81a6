"""Reads a table's columns, key, enums and replica identity from PostgreSQL's catalogue."""

import re
from dataclasses import replace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from statecast_onboarding.errors import WRONG_URL, OnboardingError, UnreachableError
from statecast_onboarding.postgres_capture import find_relation, unsent_columns
from statecast_onboarding.table import (
    DATE,
    INTERVAL,
    TIME,
    TIME_IN_UTC,
    TIMESTAMP,
    Column,
    Table,
    decimal_column,
    digits_column,
    enum_column,
    usable,
)
from statecast_onboarding.table_names import split_name, sql_name, topic_of
from statecast_service.settings import suggest

CONNECT_TIMEOUT_S = 10
MAX_WHOLE = 18
"""How many digits surely fit into an int64."""

_TYPES = {
    "smallint": "int32",
    "integer": "int32",
    "bigint": "int64",
    "boolean": "bool",
    "real": "float",
    "double precision": "double",
    "bytea": "bytes",
    "timestamp without time zone": TIMESTAMP,
    "timestamp with time zone": TIMESTAMP,
}
_NOTES = {
    "uuid": "A UUID.",
    "json": "JSON, as the database keeps it.",
    "jsonb": "JSON as text.",
    "date": DATE,
    "time without time zone": TIME,
    "time with time zone": TIME_IN_UTC,
    "interval": INTERVAL,
}
_TEXTS = ("text", "character varying", "character", "citext", "inet", "cidr", "macaddr", "xml", *_NOTES)

_TABLES = """
SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_COLUMNS = """
WITH RECURSIVE base AS (
  SELECT a.attnum, a.atttypid AS type, a.atttypmod AS modifier FROM pg_attribute a
  WHERE a.attrelid = %(table)s AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT b.attnum, t.typbasetype, t.typtypmod FROM base b JOIN pg_type t ON t.oid = b.type WHERE t.typtype = 'd'
)
SELECT a.attname AS name, a.attnotnull AS required, a.attgenerated <> '' AS generated,
       col_description(a.attrelid, a.attnum) AS comment,
       CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN format_type(t.typelem, b.modifier)
            ELSE format_type(b.type, b.modifier) END AS type,
       t.typcategory = 'A' AND t.typelem <> 0 AS repeated,
       ARRAY(SELECT e.enumlabel::text FROM pg_enum e
             WHERE e.enumtypid = CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE b.type END
             ORDER BY e.enumsortorder) AS labels
FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
JOIN pg_attribute a ON a.attrelid = %(table)s AND a.attnum = b.attnum
ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname AS name FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.place
"""


Connection = psycopg.Connection[dict[str, Any]]


def open_database(url: str) -> Connection:
    """Opens a connection that reads only. Raises UnreachableError, which does not show the password."""
    if _is_wrong(url):
        problem = WRONG_URL.format("postgres://user:password@host/name")
        raise UnreachableError(f"PostgreSQL does not let us in: {problem}")
    try:
        connection = psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, autocommit=True, row_factory=dict_row)
    except (psycopg.Error, ValueError) as error:
        raise UnreachableError(f"PostgreSQL does not let us in: {error}") from error
    connection.read_only = True
    return connection


def _is_wrong(url: str) -> bool:
    """Returns whether the text is no URL, or the name of its host begins with a part of the password."""
    try:
        return "@" in str(conninfo_to_dict(url).get("host", ""))
    except (psycopg.Error, ValueError):
        return True


def read_table(url: str, name: str, topic_prefix: str = "") -> Table:
    """Returns the table that `name` names as `schema.table`, or in `public`. Raises OnboardingError.

    Its topic is Debezium's: prefix, schema and table. The default prefix is the database's name.
    """
    schema, table = split_name(name)
    if not name.isprintable():
        # No YAML file and no list of Debezium's would give the name back.
        raise OnboardingError(f"{name!r} has characters that cannot be printed: rename the table")
    with open_database(url) as connection:
        prefix = topic_prefix or connection.info.dbname
        relation = find_relation(connection, name)
        if relation is None:
            names = [str(row["name"]) for row in connection.execute(_TABLES)]
            raise OnboardingError(f"there is no table {schema}.{table}; {suggest(f'{schema}.{table}', names)}")
        if relation.obstacles:
            raise OnboardingError(f"{schema}.{table} {relation.obstacles[0]}")
        rows = connection.execute(_COLUMNS, {"table": relation.oid}).fetchall()
        key = tuple(row["name"] for row in connection.execute(_KEY, (relation.oid,)))
        formless = unsent_columns(connection, relation.oid)
    unsent = {name: f"of type {type_}, which the connector leaves out" for name, type_ in formless.items()}
    unsent |= {row["name"]: "generated; PostgreSQL does not publish it" for row in rows if row["generated"]}
    if column := next((name for name in key if name in unsent), None):
        raise OnboardingError(f"{schema}.{table} has {column} in its primary key, {unsent[column]}: take another")
    columns, left_out = usable([_column(row) for row in rows if row["name"] not in unsent], key)
    left_out += tuple(f"{column}: {reason}" for column, reason in unsent.items())
    topic, sql = topic_of(prefix, schema, table), sql_name(name)
    return Table(table, topic, columns, key, left_out, relation.identity, sql, relation.partitioned)


def _column(row: dict[str, Any]) -> Column:
    column = Column(row["name"], "string", not row["required"], row["repeated"])
    if row["labels"]:
        return enum_column(column, row["labels"])
    comment = " ".join((row["comment"] or "").split())
    if row["type"].startswith("numeric"):
        return _numeric(replace(column, note=f"{comment} A {row['type']}.".strip()), row["type"])
    type_, note = _type(row["type"])
    return replace(column, type=type_, note=" ".join(filter(None, (comment, note))))


def _numeric(column: Column, declared: str) -> Column:
    """Types a whole number that fits as one, any other with a scale as a decimal, the rest as text."""
    digits = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", declared)
    if digits is None:
        return digits_column(column, "the column has no scale.")
    precision, scale = int(digits[1]), int(digits[2])
    if scale == 0 and precision <= MAX_WHOLE:
        return replace(column, type="int64")
    return decimal_column(column, precision, scale)


def _type(declared: str) -> tuple[str, str]:
    """Returns the type of a field, and a note for its readers."""
    name = re.sub(r"\(.*?\)", "", declared).strip()
    if name in _TYPES:
        return _TYPES[name], ""
    if name in _TEXTS:
        return "string", _NOTES.get(name, "")
    return "string", f"A {declared}: look at what the connector sends for it."
