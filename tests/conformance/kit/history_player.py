"""Plays random histories in PostgreSQL, many at once, and compares the served rows with SQL."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import psycopg
from psycopg import errors
from psycopg import sql as psycopg_sql

from kit.domain_files import store_of
from kit.expectations import plain
from kit.histories import CASE, SEED, TABLES, Statement, statements, table_of
from kit.services import Services
from testkit.postgres import connect

AT_ONCE = 8
"""How many histories are played at the same time; each reads and locks only rows of its own."""
SHOWN = 3
_EXPECTED = (
    errors.UniqueViolation,
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.InFailedSqlTransaction,
    errors.InvalidSavepointSpecification,
)
"""Errors that random statements make; others are mistakes of this kit."""
_SESSION = "SET search_path = histories; SET synchronous_commit = off; SET lock_timeout = '20ms'"
_LATEST = "SELECT history || ':' || id, to_jsonb(t) FROM {} AS t"
_MEMBERS = "SELECT team || '/' || history || ':' || id, to_jsonb(t) FROM {} AS t WHERE team IS NOT NULL"
_SUMS = """
SELECT team, to_jsonb(s) FROM (
    SELECT team, count(*) AS rows, sum(cents) AS cents, sum(weight) AS weight
    FROM {} WHERE team IS NOT NULL GROUP BY team
) AS s"""
_STORES = {"by-key": _LATEST, "by-team": _MEMBERS, "summed-by-team": _SUMS}


class HistoryPlayer:
    """Plays `count` histories, each with two sessions of its own."""

    def __init__(self, dsn: str, count: int) -> None:
        self._dsn = dsn
        self._count = count

    def play(self) -> None:
        """Plays all, and returns when all have ended."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(self._play_every, range(AT_ONCE)))

    def described(self, wrong: Mapping[int, list[str]]) -> list[str]:
        """Returns how many histories are wrong, and the shortest ones with their statements."""
        shortest = sorted(wrong, key=lambda number: len(statements(number)))[:SHOWN]
        texts = [f"{len(wrong)} of {self._count} histories differ from SQL (SEED={SEED})"]
        for number in shortest:
            script = "\n".join(map(str, statements(number)))
            texts.append(f"history {number} in {table_of(number)}: {wrong[number][:SHOWN]}\n{script}")
        return texts

    def _play_every(self, first: int) -> None:
        with ExitStack() as stack:
            sessions = [stack.enter_context(connect(self._dsn)) for _ in range(2)]
            for session in sessions:
                session.execute(_SESSION)
            for number in range(first, self._count, AT_ONCE):
                for statement in statements(number):
                    _run(sessions[statement.session], statement)

    def wrong(self, services: Services) -> Mapping[int, list[str]]:
        """Returns the differences between the served rows and SQL's, by the numbers of their histories."""
        names = {(table, store): store_of(CASE, f"{table}-{store}") for table in TABLES for store in _STORES}
        served = services.rows(list(names.values()))
        wrong: dict[int, list[str]] = defaultdict(list)
        with connect(self._dsn) as connection:
            connection.execute(_SESSION)
            for (table, store), name in names.items():
                rows = served[name]
                if isinstance(rows, str):
                    wrong[0].append(f"{name} cannot be read: {rows}")
                    continue
                for key, difference in _differences(rows, _truth(connection, table, store)):
                    wrong[_history_of(store, key)].append(f"{store} {key}: {difference}")
        return wrong


def _run(session: psycopg.Connection, statement: Statement) -> None:
    """Runs a statement. One that fails, by a key that is taken or a lock, ends its transaction as SQL has it."""
    with suppress(*_EXPECTED):
        if not statement.rows:
            session.execute(statement.sql.encode())
            return
        with session.cursor() as cursor, cursor.copy(psycopg_sql.SQL(statement.sql)) as copy:
            for row in statement.rows:
                copy.write_row(row)


def _truth(connection: psycopg.Connection, table: str, store: str) -> Mapping[str, object]:
    rows: Sequence[tuple[str, dict[str, object]]] = connection.execute(_STORES[store].format(table).encode()).fetchall()
    return {key: _as_message(row) for key, row in rows}


def _as_message(row: Mapping[str, object]) -> dict[str, object]:
    """Returns a row as its message has it in JSON: unset where it is NULL, decimals with all their digits.

    Columns that are NOT NULL have no presence, so they are left out where they are 0.
    """
    zeros = {name for name in ("history", "id") if row.get(name) == 0}
    kept = {name: value for name, value in row.items() if value is not None and name not in zeros}
    return {**kept, "weight": f"{kept['weight']:.2f}"} if "weight" in kept else kept


def _differences(served: Mapping[str, object], truth: Mapping[str, object]) -> list[tuple[str, str]]:
    seen, wanted = plain(served), plain(truth)
    keys = [key for key in seen.keys() | wanted.keys() if seen.get(key) != wanted.get(key)]
    return [(key, f"served {seen.get(key, 'absent')}, SQL has {wanted.get(key, 'nothing')}") for key in sorted(keys)]


def _history_of(store: str, key: str) -> int:
    """Returns the number of the history of a key: of its row, or of its group."""
    return int(key.partition("-" if store == "summed-by-team" else ":")[0].rpartition("/")[2])
