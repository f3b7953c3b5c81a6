"""The tables of a domain in a PostgreSQL database; a connector, such as Debezium, reads its log."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb
from pydantic import ValidationError
from typing_extensions import override

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, Rows
from cdc_simulator.errors import DatabaseAwayError, DatabaseError, DatabaseInUseError
from cdc_simulator.metrics import Readiness
from cdc_simulator.pacing import Clock
from cdc_simulator.postgres_table import PostgresTable
from cdc_simulator.settings import Settings
from cdc_simulator.source_table import Row
from statecast_service.errors import SettingsError

URL_VARIABLE = Settings.variable("postgres_url")
CONNECTION = {
    "autocommit": True,
    "connect_timeout": 5,
    "application_name": "cdc-simulator",
    # So that a server that is silent is taken for one that is away.
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}
SESSION = """
SET lock_timeout = '5s';
SET statement_timeout = '30s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 2;
"""
"""Nothing waits for ever, and the server soon gives up a session, with its lock, whose client is away."""
STATE = """
CREATE SCHEMA IF NOT EXISTS cdc_simulator;
CREATE TABLE IF NOT EXISTS cdc_simulator.state (
    domain text PRIMARY KEY,
    seed bigint NOT NULL,
    rows bigint NOT NULL,
    customers bigint NOT NULL,
    items bigint NOT NULL,
    snapshot_lsn bigint NOT NULL,         -- how many rows the tables began with
    log_sequence_number bigint NOT NULL,  -- that, and how many changes were made since
    highest_numbers jsonb NOT NULL        -- by table: the highest number that a row ever had
)"""
LOCK = "SELECT pg_try_advisory_lock(hashtext('cdc-simulator'), hashtext(%s))"
READ_STATE = "SELECT snapshot_lsn, log_sequence_number, highest_numbers FROM cdc_simulator.state WHERE domain = %s"
SAVE_STATE = "UPDATE cdc_simulator.state SET log_sequence_number = %s, highest_numbers = %s WHERE domain = %s"

OPEN_INTERVAL_S = 0.5

log = structlog.get_logger()

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresDatabase:
    """One connection, made again after it was lost; one simulator has a domain in it. Used from one thread."""

    def __init__(self, url: str, domain: str) -> None:
        """Connects at the first transaction. Raises SettingsError for a URL that is none."""
        self._url, self._domain = url, domain
        self._connection: Connection | None = None
        self._had_lock = False
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # its text may have the password
            raise SettingsError(
                f"{URL_VARIABLE}: it is not a URL like postgresql://user:password@host/database"
            ) from None
        self.address = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"
        """Where it is, for people."""

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commits when the block ends, undoes everything when it raises.

        Raises DatabaseAwayError when the server is away or asks to try again, and DatabaseError when it refuses.
        """
        try:
            connection = self._open()
            with connection.transaction():
                yield connection
        except psycopg.errors.LockNotAvailable as error:
            raise DatabaseAwayError(f"PostgreSQL at {self.address}: another transaction holds a row") from error
        except psycopg.OperationalError as error:
            raise DatabaseAwayError(f"PostgreSQL at {self.address} is away: {_line(error)}") from error
        except psycopg.Error as error:
            raise DatabaseError(f"PostgreSQL at {self.address} refuses: {_line(error)}") from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = None
            connection = psycopg.connect(self._url, **CONNECTION)  # type: ignore[arg-type]  # names and their values
            try:
                self._lock(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._had_lock = connection, True
        return self._connection

    def _lock(self, connection: Connection) -> None:
        connection.execute(SESSION)
        ((locked,),) = connection.execute(LOCK, [self._domain]).fetchall()
        if not locked and self._had_lock:
            raise DatabaseAwayError(f"PostgreSQL at {self.address} has not noticed the lost connection yet")
        if not locked:
            raise DatabaseInUseError(f"another simulator plays {self._domain} at {self.address}: end it")


class PostgresRows(Rows):
    """The rows of a table; in memory only their numbers, so that the n-th row is found at once.

    Others may change rows. One that they removed, or wrote something into that no row can hold, is left out once it
    is met; one that they added may never be chosen.
    """

    def __init__(self, connection: Connection, table: PostgresTable, highest_number: int) -> None:
        """`highest_number` is the highest that a row of the simulator ever had."""
        self._connection, self._table = connection, table
        self._numbers: list[int] = [number for (number,) in connection.execute(table.numbers.encode())]
        self.next_number = max([highest_number, *self._numbers[-1:]]) + 1

    @override
    def __len__(self) -> int:
        return len(self._numbers)

    @override
    def nth(self, index: int) -> Row | None:
        while self._numbers:
            row = self.find(self._numbers[index % len(self._numbers)])
            if row is not None:
                return row
            del self._numbers[index % len(self._numbers)]
        return None

    @override
    def find(self, number: int) -> Row | None:
        images = self._connection.execute(self._table.select.encode(), [number]).fetchone()
        try:
            return None if images is None else self._table.source.row_of(*images)
        except ValidationError:  # others have written a value that is no row
            return None

    def apply(self, mutation: Mutation) -> None:
        """Makes one change of this table; only within a transaction."""
        table, before, after = self._table, mutation.before, mutation.after
        if before is None:
            self._connection.execute(table.insert.encode(), table.insert_values(after))
            insort(self._numbers, after.number)
            self.next_number = max(self.next_number, after.number + 1)
        elif after is None:
            self._connection.execute(table.delete.encode(), [before.number])
            del self._numbers[bisect_left(self._numbers, before.number)]
        else:
            self._connection.execute(table.update.encode(), table.update_values(after))


class PostgresTables:
    """All tables of a domain. Nothing is read before `open`."""

    rows: Mapping[str, PostgresRows]
    """By the name of the table."""
    log_sequence_number: int
    """How many rows the tables began with, and how many changes were made since."""
    snapshot_lsn: int
    """How many rows they began with."""

    def __init__(self, database: PostgresDatabase, domain: Domain) -> None:
        self._database, self._domain = database, domain
        self._tables = {table.name: PostgresTable(table) for table in domain.tables}
        self._current = False

    def open(self, parameters: DatabaseParameters, now_us: int) -> bool:
        """Makes the tables with their rows if the database does not have them, and returns whether it did.

        Raises DatabaseAwayError and DatabaseError, and SettingsError when they were made from other parameters.
        """
        with self._database.transaction() as connection:
            connection.execute(STATE)
            is_new = connection.execute(READ_STATE, [self._domain.name]).fetchone() is None
            if is_new:
                self._create(connection, parameters, now_us)
            self._check(connection, parameters)
            self._read(connection)
        return is_new

    @contextmanager
    def transaction(self, now_us: int) -> Iterator[int]:
        """Yields `now_us`, and commits the changes that the block applies.

        Rolls back when the block raises. Raises DatabaseAwayError and DatabaseError.
        """
        try:
            with self._database.transaction() as connection:
                self._read_after_failure(connection)
                yield now_us
                highest = {name: rows.next_number - 1 for name, rows in self.rows.items()}
                connection.execute(SAVE_STATE, [self.log_sequence_number, Jsonb(highest), self._domain.name])
            self._committed_lsn = self.log_sequence_number
        except BaseException:
            self._current = False
            self.log_sequence_number = self._committed_lsn
            raise

    def apply(self, mutation: Mutation) -> None:
        """Makes one change; only within `transaction`."""
        self.rows[mutation.table].apply(mutation)
        self.log_sequence_number += 1

    def _create(self, connection: Connection, parameters: DatabaseParameters, now_us: int) -> None:
        for table in self._tables.values():
            for definition in table.definitions():
                connection.execute(definition.encode())
        inserts = list(self._domain.initial_rows(parameters, now_us))
        highest = dict.fromkeys(self._tables, 0)
        with connection.cursor() as cursor:
            for name, table in self._tables.items():
                rows = [insert.after for insert in inserts if insert.table == name]
                cursor.executemany(table.insert.encode(), map(table.insert_values, rows))
                highest[name] = max((row.number for row in rows), default=0)
        state = (self._domain.name, *parameters, len(inserts), len(inserts), Jsonb(highest))
        connection.execute("INSERT INTO cdc_simulator.state VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", state)

    def _check(self, connection: Connection, parameters: DatabaseParameters) -> None:
        columns = "seed, rows, customers, items"
        select = f"SELECT {columns} FROM cdc_simulator.state WHERE domain = %s"  # noqa: S608  constants
        (stored,) = connection.execute(select.encode(), [self._domain.name]).fetchall()
        for name, present, wanted in zip(DatabaseParameters._fields, stored, parameters, strict=True):
            if present != wanted:
                raise SettingsError(
                    f"{Settings.variable(name)}={wanted}: the tables at {self._database.address} were made with "
                    f"{present}; set it back, or set {URL_VARIABLE} to another database"
                )

    def _read_after_failure(self, connection: Connection) -> None:
        known_lsn = self.log_sequence_number
        if not self._current:
            self._read(connection)
        if self.log_sequence_number != known_lsn:
            raise DatabaseAwayError("the last transaction was committed, though its answer was lost")

    def _read(self, connection: Connection) -> None:
        ((self.snapshot_lsn, self.log_sequence_number, highest),) = connection.execute(
            READ_STATE, [self._domain.name]
        ).fetchall()
        self._committed_lsn = self.log_sequence_number
        self.rows = {name: PostgresRows(connection, table, highest[name]) for name, table in self._tables.items()}
        self._current = True


def open_when_there(
    tables: PostgresTables,
    parameters: DatabaseParameters,
    readiness: Readiness,
    clock: Clock,
    stopping: Callable[[], bool],
) -> bool:
    """Opens the tables once the server is there: returns False when `stopping` came first. Says why it waits."""
    logged = ""
    while not stopping():
        try:
            is_new = tables.open(parameters, clock.now_us())
        except DatabaseAwayError as error:
            readiness.reason = str(error)
            if readiness.reason != logged:
                logged = readiness.reason
                log.warning("waiting", reason=logged)
            clock.sleep(OPEN_INTERVAL_S)
        else:
            log.info("tables open", new=is_new, committed_lsn=tables.log_sequence_number)
            return True
    return False


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
