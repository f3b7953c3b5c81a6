"""Random histories of tables: statements of every kind. The outcome must be that of SQL.

A history is some statements on a few keys of its own, in two sessions. A seed and its number decide all of it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kit.case import Case

SEED = int(os.environ.get("SEED", "1"))
KEYS = 4
GROUPS = ("a", "b", "c")
TABLES = ("plain", "whole", "parted")
"""One as tables are, one with REPLICA IDENTITY FULL, and a partitioned one; a history is in one of them."""

_COLUMNS = (
    "history int, id int, team text DEFAULT 'x', cents int DEFAULT 7, weight numeric(10, 2), note text DEFAULT 'none'"
)
_DEFINITIONS = f"""
CREATE TABLE plain ({_COLUMNS}, PRIMARY KEY (history, id));
CREATE TABLE whole ({_COLUMNS}, PRIMARY KEY (history, id));
ALTER TABLE whole REPLICA IDENTITY FULL;
CREATE TABLE parted ({_COLUMNS}, PRIMARY KEY (history, id)) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE parted_high PARTITION OF parted DEFAULT;
"""
_SHAPES = {"shapes": ["latest", "members", "aggregate"], "group": "team"}
CASE = Case.model_validate(
    {
        "group": "histories",
        "name": "histories",
        "title": "Random histories",
        "input": "Random statements of every kind, in transactions and sessions that overlap.",
        "holds": "Latest, members and sums are what SQL has.",
        "source": "postgres",
        "before": _DEFINITIONS,
        "tables": dict.fromkeys(TABLES, _SHAPES),
        "expect": {},
    }
)
"""The tables, and how they are imported."""


@dataclass(frozen=True)
class Statement:
    """SQL in one of a history's sessions. With `rows` it is a COPY of them."""

    session: int
    sql: str
    rows: tuple[tuple[object, ...], ...] = ()

    def __str__(self) -> str:
        return f"{self.session}: {self.sql}{f' {list(self.rows)}' if self.rows else ''}"


def table_of(number: int) -> str:
    """Returns the table of a history."""
    return TABLES[number % len(TABLES)]


def statements(number: int, seed: int = SEED) -> list[Statement]:
    """Returns the statements of a history, which end all transactions."""
    return _Script(Random(f"{seed}-{number}"), number).statements()


class _Script:
    """Writes the statements of one history."""

    def __init__(self, chance: Random, number: int) -> None:
        self._chance = chance
        self._number = number
        self._table = table_of(number)
        self._mine = f"history = {number}"
        self._savepoints = [0, 0]
        self._open = [False, False]

    def statements(self) -> list[Statement]:
        count = self._chance.randint(5, 40)
        sessions = 2 if self._chance.random() < 0.4 else 1
        written = [each for _ in range(count) for each in self._next(self._chance.randrange(sessions))]
        ends = [self._end(session) for session in range(2) if self._open[session]]
        return [*written, *ends]

    def _next(self, session: int) -> Iterator[Statement]:
        chance = self._chance.random()
        if not self._open[session] and chance < 0.25:
            self._open[session], self._savepoints[session] = True, 0
            yield Statement(session, "BEGIN")
        elif self._open[session] and chance < 0.2:
            yield self._end(session)
        elif self._open[session] and chance < 0.3:
            yield self._savepoint(session)
        kind: Callable[[int], Statement] = self._chance.choice(self._kinds())
        yield kind(session)

    def _end(self, session: int) -> Statement:
        self._open[session] = False
        return Statement(session, self._chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))

    def _savepoint(self, session: int) -> Statement:
        if self._savepoints[session] and self._chance.random() < 0.6:
            return Statement(session, f"ROLLBACK TO s{self._chance.randint(1, self._savepoints[session])}")
        self._savepoints[session] += 1
        return Statement(session, f"SAVEPOINT s{self._savepoints[session]}")

    def _kinds(self) -> Sequence[Callable[[int], Statement]]:
        kinds = [self._insert, self._insert, self._rows, self._upsert, self._update, self._update, self._regroup]
        kinds += [self._delete, self._delete_some, self._rekey, self._shift, self._merge, self._copy, self._replaced]
        return kinds

    def _key(self) -> int:
        return self._chance.randint(1, KEYS)

    def _team(self) -> str:
        chosen = self._chance.choice((*GROUPS, None))
        return "NULL" if chosen is None else f"'{self._number}-{chosen}'"

    def _cents(self) -> str:
        return self._chance.choice(("NULL", "DEFAULT", "0", str(self._chance.randint(-1000, 1000))))

    def _weight(self) -> str:
        return self._chance.choice(("NULL", f"{self._chance.randint(-999, 999) / 100:.2f}"))

    def _note(self) -> str:
        return self._chance.choice(("NULL", "DEFAULT", "''", "'none'", "'a note'"))

    def _row(self, key: int) -> str:
        return f"({self._number}, {key}, {self._team()}, {self._cents()}, {self._weight()}, {self._note()})"

    def _insert(self, session: int) -> Statement:
        return Statement(session, f"INSERT INTO {self._table} VALUES {self._row(self._key())}")

    def _rows(self, session: int) -> Statement:
        keys = self._chance.sample(range(1, KEYS + 1), self._chance.randint(2, KEYS))
        rows = ", ".join(self._row(key) for key in keys)
        conflict = self._chance.choice(("", " ON CONFLICT DO NOTHING"))
        return Statement(session, f"INSERT INTO {self._table} VALUES {rows}{conflict}")

    def _upsert(self, session: int) -> Statement:
        update = "ON CONFLICT (history, id) DO UPDATE SET team = excluded.team, cents = excluded.cents, note = NULL"
        return Statement(session, f"INSERT INTO {self._table} VALUES {self._row(self._key())} {update}")

    def _update(self, session: int) -> Statement:
        assignment = self._chance.choice(
            (f"cents = {self._cents()}", f"weight = {self._weight()}", f"note = {self._note()}", "cents = cents + 1")
        )
        which = self._chance.choice(("", f" AND id = {self._key()}", f" AND id <= {self._key()}"))
        return Statement(session, f"UPDATE {self._table} SET {assignment} WHERE {self._mine}{which}")

    def _regroup(self, session: int) -> Statement:
        which = self._chance.choice(("", f" AND id = {self._key()}", " AND team IS NULL"))
        return Statement(session, f"UPDATE {self._table} SET team = {self._team()} WHERE {self._mine}{which}")

    def _delete(self, session: int) -> Statement:
        return Statement(session, f"DELETE FROM {self._table} WHERE {self._mine} AND id = {self._key()}")

    def _delete_some(self, session: int) -> Statement:
        which = self._chance.choice(("", f" AND id > {self._key()}", " AND cents IS NULL"))
        return Statement(session, f"DELETE FROM {self._table} WHERE {self._mine}{which}")

    def _rekey(self, session: int) -> Statement:
        """Gives one row another key."""
        key, other = self._chance.sample(range(1, KEYS + 2), 2)
        more = self._chance.choice(("", f", team = {self._team()}"))
        return Statement(session, f"UPDATE {self._table} SET id = {other}{more} WHERE {self._mine} AND id = {key}")

    def _shift(self, session: int) -> Statement:
        """Moves keys within one statement, which fails where two rows would have one key at any time."""
        shift = self._chance.choice(("id + 1", "id - 1", "id + 10", "id - 10"))
        more = self._chance.choice(("", ", cents = cents + 1"))
        return Statement(session, f"UPDATE {self._table} SET id = {shift}{more} WHERE {self._mine}")

    def _merge(self, session: int) -> Statement:
        source = f"(SELECT {self._number} AS history, g AS id FROM generate_series(1, {self._key()}) AS g) AS s"
        matched = self._chance.choice(("DELETE", "UPDATE SET cents = 3", "UPDATE SET note = DEFAULT", "DO NOTHING"))
        target = f"MERGE INTO {self._table} AS t USING {source} ON t.history = s.history AND t.id = s.id"
        new = f"INSERT (history, id, team) VALUES (s.history, s.id, {self._team()})"
        return Statement(session, f"{target} WHEN MATCHED THEN {matched} WHEN NOT MATCHED THEN {new}")

    def _copy(self, session: int) -> Statement:
        keys = self._chance.sample(range(1, KEYS + 1), self._chance.randint(1, 2))
        rows = tuple((self._number, key, f"{self._number}-{self._chance.choice(GROUPS)}", None) for key in keys)
        return Statement(session, f"COPY {self._table} (history, id, team, cents) FROM STDIN", rows)

    def _replaced(self, session: int) -> Statement:
        """Deletes rows and inserts them anew under another group, in one statement."""
        gone = f"WITH gone AS (DELETE FROM {self._table} WHERE {self._mine} AND id <> {self._key()} RETURNING *)"
        rows = f"SELECT history, id + {KEYS}, {self._team()}, cents, weight, note FROM gone"
        return Statement(session, f"{gone} INSERT INTO {self._table} {rows}")
