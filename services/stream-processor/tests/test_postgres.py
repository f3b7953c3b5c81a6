"""Tables as teams have them, in a real PostgreSQL behind a real Debezium: the keyed topics equal what SQL says.

The table has a primary key of two columns, REPLICA IDENTITY DEFAULT, and a column for groups that may be NULL. It has
rows before the connector starts, which come by snapshots that are asked for by signals.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from statecast.portfolio.v1.open_position_pb2 import OpenPosition
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.steps.dead_letters import PIPELINES, REASON
from testkit.debezium import ConnectProcess, postgres_connector, running_connect
from testkit.ports import free_port
from testkit.postgres import PostgresProcess, running_postgres
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

ROWS = 3_000
TABLES = f"""
CREATE TABLE positions (
    exchange text, position_id int, client text, ticker text NOT NULL DEFAULT 'none', amount bigint NOT NULL,
    PRIMARY KEY (exchange, position_id));
CREATE TABLE signals (id text PRIMARY KEY, type text NOT NULL, data text);
INSERT INTO positions
    SELECT (ARRAY['LON', 'NASDAQ', 'X:Y'])[n % 3 + 1], n / 3, nullif('client-' || n % 11, 'client-0'), 'T' || n % 5, n
    FROM generate_series(0, {ROWS - 1}) AS n;
"""
MESSAGE = "statecast.portfolio.v1.OpenPositionChange"
SOURCE = {"topic": "pg-positions", "message": MESSAGE, "format": "debezium-json"}
KEY = ["exchange", "position_id"]
TOTALS = {"positions": "count(*)", "shares": "sum(amount)"}
HOLDERS = {"topic": "pg-holders", "message": "statecast.portfolio.v1.ShareHolder"}
FILES: Mapping[str, Mapping[str, Any]] = {
    "pg-latest": {"group_by": KEY, "keep": "latest", "sink": {"topic": "pg-latest"}},
    "pg-members": {
        "group_by": "client",
        "keep": {"members": {"key": KEY, "sort": "amount"}},
        "sink": {"topic": "pg-members"},
    },
    "pg-holders": {"group_by": "client", "keep": {"aggregate": TOTALS}, "sink": HOLDERS},
    "pg-wrong": {
        "group_by": "client",
        "keep": {"members": {"key": "position_id", "sort": "amount"}},
        "sink": {"topic": "pg-wrong"},
        "dead_letters": {"limit": 5},
    },
}
LATEST = (
    "SELECT replace(exchange, ':', '\\:') || ':' || position_id, coalesce(client, ''), ticker, amount FROM positions"
)
MEMBERS = """
SELECT client || '|' || lpad(amount::text, 19, '0') || '|' || replace(exchange, ':', '\\:') || ':' || position_id,
       client, ticker, amount
FROM positions WHERE client IS NOT NULL
"""
HELD = "SELECT client, client, count(*)::text, sum(amount) FROM positions WHERE client IS NOT NULL GROUP BY client"

Rows = dict[str, tuple[object, ...]]
signals = count()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        server.execute(TABLES)
        yield server


@pytest.fixture(scope="module")
def connect(
    database: PostgresProcess, kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    for topic in ("pg-positions", "pg-signals", "pg-positions.dead-letter", *FILES):
        create_topic(kafka, topic, partitions=2)
    asked = {"signal_data_collection": "public.signals", "snapshot_mode": "no_data"}
    chunks = {"incremental_snapshot_chunk_size": "200"}
    connector = postgres_connector(database.server, ["positions", "signals"], topics="pg-$1", **asked, **chunks)
    with running_connect(tmp_path_factory.mktemp("connect"), kafka, connector) as worker:
        yield worker


@pytest.fixture(scope="module")
def processor(connect: ConnectProcess, kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processor]:
    directory = tmp_path_factory.mktemp("processor")
    files = [_written(directory, {"name": name, "source": SOURCE, **content}) for name, content in FILES.items()]
    with closing(Processor(directory, kafka, free_port(), files, checkpoint_interval="5s")) as running:
        running.start()
        running.wait_ready()
        yield running


def _written(directory: Path, content: Mapping[str, Any]) -> Path:
    file = directory / f"{content['name']}.yaml"
    file.write_text(yaml.safe_dump(dict(content)))
    return file


@pytest.fixture
def is_exact(database: PostgresProcess, processor: Processor, kafka: str) -> Callable[[], None]:
    """Waits until each keyed topic holds what SQL says; only the wrong pipeline has set anything aside."""

    def wait_for(topic: str, query: str, shown: Callable[[StateRecord], tuple[object, ...]]) -> None:
        expected: Rows = {row[0]: row[1:] for row in database.execute(query)}

        def difference() -> str:
            differs = _difference(topic, _held(kafka, topic, shown), expected)
            return f"{differs} {_letters(kafka)} {processor.log[-3000:]}"

        wait_until(lambda: _held(kafka, topic, shown) == expected, difference, interval_s=0.5)

    def wait() -> None:
        wait_for("pg-latest", LATEST, _position)
        wait_for("pg-members", MEMBERS, _position)
        wait_for("pg-holders", HELD, _holder)
        assert {pipelines for pipelines, _ in _letters(kafka)} == {"pg-wrong"}

    return wait


def _held(kafka: str, topic: str, shown: Callable[[StateRecord], tuple[object, ...]]) -> Rows:
    fenced = read_fenced(read_topic(kafka, topic))
    return {key.replace("\0", "|"): shown(state) for key, state in fenced.items()}


def _position(state: StateRecord) -> tuple[object, ...]:
    row = OpenPosition.FromString(state.payload)
    return row.client, row.ticker, row.amount


def _holder(state: StateRecord) -> tuple[object, ...]:
    row = ShareHolder.FromString(state.payload)
    return row.client, str(row.positions), row.shares


def _difference(topic: str, held: Rows, expected: Rows) -> str:
    keys = sorted(key for key in held.keys() | expected.keys() if held.get(key) != expected.get(key))
    lines = [f"{key}: {held.get(key)} instead of {expected.get(key)}" for key in keys[:5]]
    return f"{topic}: {len(keys)} of {len(expected)} keys differ: {lines} "


def _letters(kafka: str) -> set[tuple[str, str]]:
    """The pipelines and the reasons of all dead letters."""
    letters = [record.headers for record in read_topic(kafka, "pg-positions.dead-letter")]
    return {(each[PIPELINES].decode(), each[REASON].decode()) for each in letters}


def _ask_for_snapshot(database: PostgresProcess, of_type: str) -> None:
    data = {"data-collections": ["public.positions"], "type": of_type}
    values = [f"signal-{next(signals)}", "execute-snapshot", json.dumps(data)]
    database.execute("INSERT INTO signals VALUES (%s, %s, %s)", values)


def _take_snapshot(database: PostgresProcess, kafka: str, of_type: str) -> None:
    """Returns when the topic has a record more for each row."""
    [(rows,)] = database.execute("SELECT count(*) FROM positions")
    wanted = len(read_topic(kafka, "pg-positions")) + rows
    _ask_for_snapshot(database, of_type)
    _wait_for_records(kafka, wanted)


def _wait_for_records(kafka: str, wanted: int) -> None:
    """Waits until the table's topic has had so many."""
    read = partial(read_topic, kafka, "pg-positions")
    wait_until(lambda: len(read()) >= wanted, lambda: f"{len(read())} of {wanted} records")


def _change_while_open(database: PostgresProcess, during: Callable[[], None]) -> None:
    """Changes every row in a transaction that is open for as long as `during` takes."""
    with psycopg.connect(database.server.dsn) as connection:
        connection.execute("UPDATE positions SET amount = amount + 100000 WHERE position_id % 7 = 0")
        connection.execute("UPDATE positions SET client = 'client-3' WHERE position_id % 14 = 0")
        during()


def test_an_incremental_snapshot_beside_changes_is_exact(
    database: PostgresProcess, is_exact: Callable[[], None], kafka: str
) -> None:
    def snapshot() -> None:
        _ask_for_snapshot(database, "incremental")
        for step in range(60):
            database.execute(
                "UPDATE positions SET ticker = 'now' WHERE position_id = %s AND exchange = 'LON'", [step * 7 + 1]
            )
        _wait_for_records(kafka, ROWS)

    _change_while_open(database, snapshot)

    is_exact()


def test_changes_without_rows_before_them_are_exact(database: PostgresProcess, is_exact: Callable[[], None]) -> None:
    database.execute(
        """
        UPDATE positions SET client = NULL WHERE position_id % 10 = 1;
        UPDATE positions SET client = 'client-new', amount = amount + 1 WHERE position_id % 10 = 2;
        UPDATE positions SET exchange = 'PARIS' WHERE exchange = 'LON' AND position_id % 10 = 3;
        UPDATE positions SET position_id = position_id + 1000000 WHERE position_id % 10 = 4;
        DELETE FROM positions WHERE position_id % 10 = 5;
        DELETE FROM positions WHERE client IS NULL AND position_id % 10 = 1 AND exchange = 'LON';
        """
    )
    database.execute("UPDATE positions SET client = 'client-back' WHERE client IS NULL AND position_id % 20 = 1")

    is_exact()


@pytest.mark.parametrize("of_type", ["blocking", "incremental"])
def test_a_snapshot_of_an_idle_table_and_the_change_right_behind_it_are_exact(
    database: PostgresProcess, is_exact: Callable[[], None], kafka: str, of_type: str
) -> None:
    # To read the rows then writes nothing into the log, and the next change begins where the snapshot stands.
    database.execute("VACUUM positions")
    _take_snapshot(database, kafka, of_type)
    database.execute("UPDATE positions SET client = 'client-last' WHERE position_id % 9 = 0")

    is_exact()


def test_a_blocking_snapshot_beside_an_open_transaction_is_exact(
    database: PostgresProcess, is_exact: Callable[[], None], kafka: str
) -> None:
    _change_while_open(database, lambda: _take_snapshot(database, kafka, "blocking"))

    is_exact()


def test_a_pipeline_that_would_take_two_rows_for_one_stands_still_alone(
    database: PostgresProcess, is_exact: Callable[[], None], processor: Processor, kafka: str
) -> None:
    database.execute("UPDATE positions SET ticker = 'after all'")

    is_exact()

    assert _letters(kafka) == {
        ("pg-wrong", "the record's key has exchange, which keep.members.key lacks: two rows would be one")
    }
    assert read_topic(kafka, "pg-wrong") == []
    assert "the limit is 5 of pg-wrong" in processor.log
    assert 'stream_processor_query_up{query="pg-wrong"} 0.0' in processor.get("/metrics")[1]
