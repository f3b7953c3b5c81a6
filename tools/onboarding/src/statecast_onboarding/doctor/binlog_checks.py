"""What of a MySQL or MariaDB will not work: its binlog, the user, and the tables that are to be sent."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.cursors import Cursor

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn

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
"""What a variable must be, where the server has it, and what to do."""

_TABLE = """
SELECT EXISTS (SELECT * FROM information_schema.table_constraints c WHERE c.table_schema = t.table_schema
               AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'),
       (SELECT group_concat(c.column_name ORDER BY c.ordinal_position SEPARATOR ', ') FROM information_schema.columns c
        WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.column_type LIKE %s)
FROM information_schema.tables t WHERE t.table_schema = %s AND t.table_name = %s AND t.table_type = 'BASE TABLE'
"""
_REPLICATES = re.compile(r"REPLICATION SLAVE|ALL PRIVILEGES ON \*\.\*|GRANT [`'\"]")
"""A right to read the binlog, or a role that may have it."""


def check_binlog_database(url: str, tables: Collection[str], config: Mapping[str, str]) -> Iterator[Finding]:
    """What will not work with `tables`, as database.table. `config` is the connector's."""
    try:
        with _open_database(url) as cursor:
            yield from _server(cursor)
            yield from _user(cursor)
            for name in tables:
                yield from _table(cursor, name, config)
    except (pymysql.Error, ValueError, OSError) as error:
        yield fail("database", f"MySQL does not let us in, or answer: {error}")


@contextmanager
def _open_database(url: str) -> Iterator[Cursor]:
    parts = urlsplit(url)
    connection = pymysql.connect(
        host=parts.hostname or "",
        port=parts.port or DEFAULT_PORT,
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
    keyed, unsigned = table
    if not keyed:
        yield fail(subject, "has no primary key: add one, as changes cannot be told apart without it")
    if unsigned and config.get("bigint.unsigned.handling.mode", "long") != "precise":
        text = "is BIGINT UNSIGNED, and comes as a negative number above 9223372036854775807"
        yield warn(subject, f"{unsigned} {text}: set bigint.unsigned.handling.mode=precise at the connector")
