"""Checks a MySQL or MariaDB: its binlog, the user, and the tables that are to be sent."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.cursors import Cursor

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.errors import WRONG_URL

SCHEMES = ("mysql", "mariadb")
CONNECT_TIMEOUT_S = 10
DEFAULT_PORT = 3306

_VARIABLES: Mapping[str, tuple[str, str]] = {
    "log_bin": ("ON", "changes are not logged: set log_bin, and restart the server"),
    "binlog_format": ("ROW", "changes are logged as statements, which the connector passes over: set it to ROW"),
    "binlog_row_image": ("FULL", "an update leaves out columns, and the connector stops: set it to FULL"),
    "log_bin_compress": ("OFF", "the connector cannot read what is compressed: set it to OFF"),
    "binlog_transaction_compression": ("OFF", "changes of one transaction have no order: set it to OFF"),
    "binlog_row_value_options": ("", "JSON is logged in parts, which the connector passes over: set it to ''"),
}
"""The value that a variable must have, where the server has the variable, and the remedy."""

_TABLE = """
SELECT t.table_type,
       EXISTS (SELECT * FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema
               AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'),
       (SELECT group_concat(c.column_name ORDER BY c.ordinal_position SEPARATOR ', ') FROM information_schema.columns c
        WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_type LIKE %s),
       (SELECT e.engine FROM information_schema.engines e WHERE e.engine = t.engine AND e.transactions <> 'YES'),
       EXISTS (SELECT * FROM information_schema.partitions p WHERE p.table_schema = t.table_schema
               AND p.table_name = t.table_name AND p.partition_name IS NOT NULL)
FROM information_schema.tables t WHERE t.table_schema = %s AND t.table_name = %s
"""
_CASCADES = """
SELECT r.constraint_name, r.referenced_table_name,
       CASE WHEN r.delete_rule IN ('RESTRICT', 'NO ACTION') THEN '' ELSE concat('ON DELETE ', r.delete_rule) END,
       CASE WHEN r.update_rule IN ('RESTRICT', 'NO ACTION') THEN '' ELSE concat('ON UPDATE ', r.update_rule) END
FROM information_schema.referential_constraints r WHERE r.constraint_schema = %s AND r.table_name = %s
"""
_REPLICATES = re.compile(r"REPLICATION SLAVE|ALL PRIVILEGES ON \*\.\*|GRANT [`'\"]")
"""A right to read the binlog, or a role that may have it."""


def check_binlog_database(url: str, tables: Collection[str], config: Mapping[str, str]) -> Iterator[Finding]:
    """Finds problems of `tables`, as database.table, and of their server. `config` is the connector's."""
    try:
        with _open_database(url) as cursor:
            yield from _server(cursor)
            yield from _user(cursor)
            yield from _databases(cursor, sorted({name.partition(".")[0] for name in tables}))
            for name in tables:
                yield from _table(cursor, name, config)
    except (pymysql.Error, ValueError, OSError) as error:
        yield fail("database", f"MySQL does not let us in, or answer: {error}")


@contextmanager
def _open_database(url: str) -> Iterator[Cursor]:
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ValueError(WRONG_URL.format("mysql://user:password@host")) from None
    connection = pymysql.connect(
        host=parts.hostname or "",
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=CONNECT_TIMEOUT_S,
        ssl_ca=parse_qs(parts.query).get("ssl_ca", [None])[0],
    )
    try:
        yield connection.cursor()
    finally:
        connection.close()


def _server(cursor: Cursor) -> Iterator[Finding]:
    cursor.execute("SHOW GLOBAL VARIABLES")
    values = {str(name): str(value) for name, value in cursor.fetchall()}
    for name, (wanted, text) in _VARIABLES.items():
        value = values.get(name, wanted)
        if value.upper() != wanted:
            yield fail(name, f"is {value}: {text}")
        elif name in values:
            yield ok(name, f"is {value or 'empty'}")


def _databases(cursor: Cursor, names: Iterable[str]) -> Iterator[Finding]:
    """Databases that the server leaves out of its binlog."""
    logged, ignored = _binlog_filters(cursor)
    for name in names:
        if name in ignored or (logged and name not in logged):
            text = "is not in the binlog (binlog_do_db, binlog_ignore_db), so no change of it arrives"
            yield fail(f"database {name}", f"{text}: take it out of these, and restart the server")


def _binlog_filters(cursor: Cursor) -> tuple[set[str], set[str]]:
    """Returns the only databases that are logged, and those that are not; empty for a user who may not ask."""
    for statement in ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"):  # MySQL 8.4 knows only the second
        try:
            cursor.execute(statement)
        except (pymysql.err.ProgrammingError, pymysql.err.OperationalError):
            continue
        if row := cursor.fetchone():
            logged, ignored = ({*filter(None, str(each).split(","))} for each in row[2:4])
            return logged, ignored
    return set(), set()


def _user(cursor: Cursor) -> Iterator[Finding]:
    cursor.execute("SHOW GRANTS")
    grants = "\n".join(str(grant) for (grant,) in cursor.fetchall())
    if not _REPLICATES.search(grants):
        yield fail(
            "user", "may not read the binlog: GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.*"
        )


def _table(cursor: Cursor, name: str, config: Mapping[str, str]) -> Iterator[Finding]:
    subject = f"table {name}"
    database, _, table_name = name.partition(".")
    cursor.execute(_TABLE, ("bigint%unsigned%", database, table_name))
    table = cursor.fetchone()
    if table is None:
        yield fail(subject, "does not exist, or is not visible to the user: correct its name, or GRANT SELECT on it")
        return
    kind, keyed, unsigned, unsafe_engine, partitioned = table
    if "VIEW" in kind or kind == "SEQUENCE":
        yield fail(
            subject, f"is a {kind.lower()}, and the binlog has changes of tables alone: take those that it reads"
        )
        return
    if not keyed:
        yield fail(subject, "has no primary key: add one, as changes cannot be told apart without it")
    if unsigned and config.get("bigint.unsigned.handling.mode", "long") != "precise":
        text = "is BIGINT UNSIGNED, and comes as a negative number above 9223372036854775807"
        yield warn(subject, f"{unsigned} {text}: set bigint.unsigned.handling.mode=precise at the connector")
    if unsafe_engine:
        text = "and a change that fails half-way stays in the table: ALTER TABLE … ENGINE=InnoDB"
        yield warn(subject, f"is of the engine {unsafe_engine}, which has no transactions, {text}")
    if partitioned:
        text = "has partitions: ALTER TABLE … DROP, TRUNCATE and EXCHANGE PARTITION send no rows, and theirs stay"
        yield warn(subject, f"{text}; DELETE them first")
    cursor.execute(_CASCADES, (database, table_name))
    yield from _cascades(subject, cursor.fetchall())


def _cascades(subject: str, foreign_keys: Iterable[tuple[str, str, str, str]]) -> Iterator[Finding]:
    """Yields a finding for each foreign key by which InnoDB changes rows itself, without an entry in the binlog."""
    for name, parent, on_delete, on_update in foreign_keys:
        if actions := " ".join(filter(None, (on_delete, on_update))):
            text = f"has the foreign key {name} with {actions}, whose changes are not in the binlog, so rows go stale"
            todo = f"make it RESTRICT, and change these rows before those of {parent}, by a statement or a trigger"
            yield fail(subject, f"{text}: {todo}")
