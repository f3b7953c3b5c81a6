"""Opens the SQLite file of the order database, and makes it when it is not there."""

import fcntl
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cdc_simulator.errors import DatabaseError, DatabaseInUseError, SettingsError
from cdc_simulator.order_row import OrderRow, Shop
from cdc_simulator.row_columns import INSERT, insert_values
from cdc_simulator.schema import FORMAT_VERSION, TABLES, TAKE_SNAPSHOT, TRIGGERS
from cdc_simulator.settings import variable

OTHERS_HOLD_IT_S = 10.0


class Database:
    """One open database file, which no other simulator may open meanwhile. Used from one thread.

    It is in write-ahead mode, so others may read it at any time, and a commit is on disk before it returns: what Kafka
    was told survives a power failure.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, or an empty one. Raises DatabaseError."""
        self.path = path
        with ExitStack() as opened, self._named():
            opened.enter_context(_lock(path))
            self.connection = opened.enter_context(
                closing(sqlite3.connect(path, isolation_level=None, timeout=OTHERS_HOLD_IT_S))
            )
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self._opened = opened.pop_all()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits when the block ends, undoes everything when it raises. SQLite's errors come as DatabaseError."""
        with self._named():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Returns all rows that the statement selects. Raises DatabaseError."""
        with self._named():
            return self.connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Closes the file and lets others have it."""
        self._opened.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DatabaseError(
                f"the database {self.path} fails: {error}; make room, or correct {variable('database')}"
            ) from error


def create_if_new(database: Database, shop: Shop, rows: Iterable[OrderRow], now_us: int) -> bool:
    """Fills an empty database with the rows and logs the initial snapshot of them, all in one transaction.

    Returns whether it was empty. Raises DatabaseError for a file of something else, and SettingsError when the
    database was made from something else than `shop`.
    """
    with database.transaction() as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            _create(connection, shop, rows, now_us)
            return True
    if version != FORMAT_VERSION:
        raise DatabaseError(
            f"{database.path} is not an order database of format {FORMAT_VERSION}; "
            f"remove it, or set {variable('database')} to another file"
        )
    _check_shop(database, shop)
    return False


def _create(connection: sqlite3.Connection, shop: Shop, rows: Iterable[OrderRow], now_us: int) -> None:
    for statement in _statements(TABLES):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO incarnation VALUES (1, ?, ?, ?, ?, ?, 'tx-1', ?, 0)", (now_us // 1000, *shop, now_us)
    )
    connection.executemany(INSERT, map(insert_values, rows))
    connection.execute(TAKE_SNAPSHOT)
    for statement in _statements(TRIGGERS):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def _statements(script: str) -> Iterator[str]:
    """Cuts a script into statements; sqlite3's own executescript would commit before it begins."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _check_shop(database: Database, shop: Shop) -> None:
    found = Shop(*database.query("SELECT seed, orders, customers, items FROM incarnation")[0])
    for name, has, wanted in zip(Shop._fields, found, shop, strict=True):
        if has != wanted:
            raise SettingsError(
                f"{variable(name)}={wanted}: the database {database.path} was made with {has}; "
                f"set it back, or set {variable('database')} to another file"
            )


def _lock(path: Path) -> BinaryIO:
    """Takes the lock that the kernel frees when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f"{path.name}.lock").open("ab")
    except OSError as error:
        raise DatabaseError(f"the database {path} cannot be opened: {error}; correct {variable('database')}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise DatabaseInUseError(
            f"another simulator has the database {path}: end it, or set {variable('database')} to another file"
        ) from error
    return file
