"""A typical team's table in a real database behind a real Debezium, with keyed topics that must equal the SQL result.

The table `positions` has a primary key of two columns, and a nullable column for groups. Every supported database
accepts the SQL.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import yaml

from statecast.portfolio.v1.open_position_pb2 import OpenPosition
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.steps.dead_letters import PIPELINES, REASON
from testkit.ports import free_port
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import count_records, create_topic, read_topic

MESSAGE = "statecast.portfolio.v1.OpenPositionChange"
KEY = ["exchange", "position_id"]
CHECKPOINT = "20s"
"""Spark plans each query anew after each, which takes a second of CPU; a busy machine would do nothing else."""
TOTALS = {"positions": "count(*)", "shares": "sum(amount)"}
KEPT: Mapping[str, Mapping[str, Any]] = {
    "latest": {"group_by": KEY, "keep": "latest"},
    "members": {"group_by": "client", "keep": {"members": {"key": KEY, "sort": "amount"}}},
    "holders": {
        "group_by": "client",
        "keep": {"aggregate": TOTALS},
        "sink": {"message": "statecast.portfolio.v1.ShareHolder"},
    },
}
ROW_KEY = "concat(replace(exchange, ':', concat(chr(92), ':')), ':', position_id)"
LATEST = f"SELECT {ROW_KEY}, coalesce(client, ''), ticker, amount FROM positions"
MEMBERS = f"""
SELECT concat(client, '|', lpad(cast(amount AS char(19)), 19, '0'), '|', {ROW_KEY}), client, ticker, amount
FROM positions WHERE client IS NOT NULL
"""
HOLDERS = "SELECT client, client, count(*), sum(amount) FROM positions WHERE client IS NOT NULL GROUP BY client"

GROUP_MOVES = "UPDATE positions SET client = 'client-3' WHERE position_id % 14 = 0"
SORT_MOVES = "UPDATE positions SET amount = amount + 100000 WHERE position_id % 7 = 0"
CHANGES_OF_EACH_KIND = (
    "UPDATE positions SET client = NULL WHERE position_id % 10 = 1",
    "UPDATE positions SET client = 'client-new', amount = amount + 1 WHERE position_id % 10 = 2",
    "UPDATE positions SET exchange = 'PARIS' WHERE exchange = 'LON' AND position_id % 10 = 3",
    "UPDATE positions SET position_id = position_id + 1000000 WHERE position_id % 10 = 4",
    "DELETE FROM positions WHERE position_id % 10 = 5",
    "DELETE FROM positions WHERE client IS NULL AND position_id % 10 = 1 AND exchange = 'LON'",
)
"""To be run in one transaction: groups left and joined, keys changed, rows deleted."""

Rows = dict[str, tuple[object, ...]]
Shown = Callable[[StateRecord], tuple[object, ...]]


class Database(Protocol):
    """A database that holds the table."""

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement in a transaction of its own, and returns the rows that it selects, if it does."""
        ...


@dataclass(frozen=True)
class PositionTable:
    """The table, which a connector sends to the topic `<prefix>-positions`, and its pipelines by short name."""

    database: Database
    schema: str
    kafka: str
    prefix: str
    signals: Iterator[int] = field(default_factory=count)

    @property
    def topic(self) -> str:
        return f"{self.prefix}-positions"

    def create_topics(self, *more: str) -> None:
        """Creates the table's topic, its dead letters', that of the signals, the keyed topics, and `more` of those."""
        keyed = [f"{self.prefix}-{each}" for each in (*KEPT, *more)]
        for topic in (self.topic, f"{self.topic}.dead-letter", f"{self.prefix}-signals", *keyed):
            create_topic(self.kafka, topic, partitions=2)

    @contextmanager
    def running_processor(
        self, directory: Path, more: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Iterator[Processor]:
        """Yields a processor of the pipelines, and of `more` by short name."""
        files = [self._written(directory, name, content) for name, content in {**KEPT, **(more or {})}.items()]
        with closing(Processor(directory, self.kafka, free_port(), files, checkpoint_interval=CHECKPOINT)) as running:
            running.start_ready()
            yield running

    def _written(self, directory: Path, short: str, content: Mapping[str, Any]) -> Path:
        name = f"{self.prefix}-{short}"
        source = {"topic": self.topic, "message": MESSAGE, "format": "debezium-json"}
        whole = {"name": name, "source": source, **content, "sink": {"topic": name, **content.get("sink", {})}}
        file = directory / f"{name}.yaml"
        file.write_text(yaml.safe_dump(whole))
        return file

    def wait_exact(self, processor: Processor) -> None:
        """Waits until each keyed topic holds the result of the SQL query."""
        self._wait_for("latest", LATEST, _position, processor)
        self._wait_for("members", MEMBERS, _position, processor)
        self._wait_for("holders", HOLDERS, _holder, processor)

    def _wait_for(self, short: str, query: str, shown: Shown, processor: Processor) -> None:
        topic = f"{self.prefix}-{short}"
        expected: Rows = {row[0]: row[1:] for row in self.database.execute(query)}

        def difference() -> str:
            return f"{_difference(topic, self._held(topic, shown), expected)} {self.letters()} {processor.log[-3000:]}"

        wait_until(lambda: self._held(topic, shown) == expected, difference, interval_s=0.5)

    def _held(self, topic: str, shown: Shown) -> Rows:
        fenced = read_fenced(read_topic(self.kafka, topic))
        return {key.replace("\0", "|"): shown(state) for key, state in fenced.items()}

    def letters(self) -> set[tuple[str, str]]:
        """Returns the pipelines and the reasons of all dead letters."""
        letters = [record.headers for record in read_topic(self.kafka, f"{self.topic}.dead-letter")]
        return {(each[PIPELINES].decode(), each[REASON].decode()) for each in letters}

    def ask_for_snapshot(self, of_type: str) -> None:
        """Asks by a signal for a snapshot, `incremental` or `blocking`."""
        data = {"data-collections": [f"{self.schema}.positions"], "type": of_type}
        values = [f"signal-{next(self.signals)}", "execute-snapshot", json.dumps(data)]
        self.database.execute("INSERT INTO signals VALUES (%s, %s, %s)", values)

    def take_snapshot(self, of_type: str) -> None:
        """Asks for a snapshot, and returns when the topic has a record more for each row."""
        [(rows,)] = self.database.execute("SELECT count(*) FROM positions")
        wanted = self.records() + rows
        self.ask_for_snapshot(of_type)
        self.wait_for_records(wanted)

    def records(self) -> int:
        """Returns how many records the table's topic has had."""
        return count_records(self.kafka, self.topic)

    def wait_for_records(self, wanted: int) -> None:
        """Waits until the table's topic has had so many."""
        wait_until(lambda: self.records() >= wanted, lambda: f"{self.records()} of {wanted} records")


def _position(state: StateRecord) -> tuple[object, ...]:
    row = OpenPosition.FromString(state.payload)
    return row.client, row.ticker, row.amount


def _holder(state: StateRecord) -> tuple[object, ...]:
    row = ShareHolder.FromString(state.payload)
    return row.client, row.positions, row.shares


def _difference(topic: str, held: Rows, expected: Rows) -> str:
    keys = sorted(key for key in held.keys() | expected.keys() if held.get(key) != expected.get(key))
    lines = [f"{key}: {held.get(key)} instead of {expected.get(key)}" for key in keys[:5]]
    return f"{topic}: {len(keys)} of {len(expected)} keys differ: {lines} "
