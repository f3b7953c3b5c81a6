"""Opens the SQLite file of the database, and makes it when it is not there."""

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cdc_simulator.domain import DatabaseParameters, Domain
from cdc_simulator.errors import DatabaseError, DatabaseInUseError
from cdc_simulator.settings import Settings
from statecast_service.errors import SettingsError

FORMAT_VERSION = 2
# SQLite's AUTOINCREMENT gives log sequence numbers without gaps, and never one twice, even after the log was pruned.
CHANGE_LOG = """
CREATE TABLE change_log (
    lsn INTEGER PRIMARY KEY AUTOINCREMENT,
    source_table TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    commit_time_us INTEGER NOT NULL,
    snapshot INTEGER NOT NULL,
    before TEXT, -- the row as a JSON array in the order of the table's columns but virtual ones; null for an insert
    after TEXT   -- likewise; null for a delete
)"""
INCARNATION = """
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
)"""
LOCK_TIMEOUT_S = 10.0  # for readers that hold SQLite's own lock
FILE_VARIABLE = Settings.variable("database")


class Database:
    """One open database file, which no other simulator may open meanwhile. Used from one thread.

    It is in write-ahead mode, so others may read it at any time, and a commit is on disk before it returns: changes
    that Kafka has received survive a power failure.
    """

    def __init__(self, path: Path) -> None:
        """Opens the file, or an empty one. Raises DatabaseError."""
        self.path = path
        with ExitStack() as opened, self._errors_name_the_file():
            opened.enter_context(_lock(path))
            self.connection = opened.enter_context(
                closing(sqlite3.connect(path, isolation_level=None, timeout=LOCK_TIMEOUT_S))
            )
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self._opened = opened.pop_all()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits when the block ends, undoes everything when it raises. SQLite's errors come as DatabaseError."""
        with self._errors_name_the_file():
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
        with self._errors_name_the_file():
            return self.connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self._opened.close()

    @contextmanager
    def _errors_name_the_file(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise DatabaseError(
                f"the database {self.path} fails: {error}; make room, or correct {FILE_VARIABLE}"
            ) from error


def create_if_new(database: Database, domain: Domain, parameters: DatabaseParameters, now_us: int) -> bool:
    """Fills an empty database with the domain's tables, its rows and the snapshot of them, all in one transaction.

    Returns whether it was empty. Raises DatabaseError for a file of something else, and SettingsError when the
    database was made for another domain or from other parameters.
    """
    with database.transaction() as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables == 0:
            _create(connection, domain, parameters, now_us)
            return True
    if version != FORMAT_VERSION:
        raise DatabaseError(
            f"{database.path} is not a simulator's database of format {FORMAT_VERSION}; "
            f"remove it, or set {FILE_VARIABLE} to another file"
        )
    stored = database.query("SELECT domain, seed, rows, customers, items FROM incarnation")[0]
    names = ("domain", *DatabaseParameters._fields)
    for name, present, wanted in zip(names, stored, (domain.name, *parameters), strict=True):
        if present != wanted:
            raise SettingsError(
                f"{Settings.variable(name)}={wanted}: the database {database.path} was made with {present}; "
                f"set it back, or set {FILE_VARIABLE} to another file"
            )
    return False


def _create(connection: sqlite3.Connection, domain: Domain, parameters: DatabaseParameters, now_us: int) -> None:
    for definition in (CHANGE_LOG, INCARNATION, *(table.definition() for table in domain.tables)):
        connection.execute(definition)
    start = "INSERT INTO incarnation VALUES (1, ?, ?, ?, ?, ?, ?, 'tx-1', ?, 0, 0)"
    connection.execute(start, (now_us // 1000, domain.name, *parameters, now_us))
    tables = {table.name: table for table in domain.tables}
    for insert in domain.initial_rows(parameters, now_us):
        table = tables[insert.table]
        connection.execute(table.insert, table.insert_values(insert.after))
    for table in domain.tables:
        for statement in (table.snapshot(), *table.triggers()):
            connection.execute(statement)
    connection.execute("UPDATE incarnation SET snapshot_lsn = (SELECT max(lsn) FROM change_log)")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def _lock(path: Path) -> BinaryIO:
    """Takes the lock that the kernel frees when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.with_name(f"{path.name}.lock").open("ab")
    except OSError as error:
        raise DatabaseError(f"the database {path} cannot be opened: {error}; correct {FILE_VARIABLE}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise DatabaseInUseError(
            f"another simulator has the database {path}: end it, or set {FILE_VARIABLE} to another file"
        ) from error
    return file
