"""Tables as teams have them, in a real MariaDB behind a real Debezium: the keyed topics equal the results of SQL.

A place in the binlog is a file, an event in it, and a row of the event.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from testkit.debezium import ConnectProcess, mariadb_connector, running_connect
from testkit.mariadb import USER, MariaDbProcess, running_mariadb
from testkit.stream_processor.position_table import CHANGES_OF_EACH_KIND, GROUP_MOVES, SORT_MOVES, PositionTable
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

ROWS = 600
TABLES = (
    """CREATE TABLE positions (
        exchange varchar(20), position_id int, client text, ticker text NOT NULL, amount bigint NOT NULL,
        PRIMARY KEY (exchange, position_id))""",
    "CREATE TABLE signals (id varchar(42) PRIMARY KEY, type text NOT NULL, data text)",
    f"""INSERT INTO positions
        SELECT elt(seq % 3 + 1, 'LON', 'NASDAQ', 'X:Y'), seq DIV 3, nullif(concat('client-', seq % 11), 'client-0'),
               concat('T', seq % 5), seq
        FROM seq_0_to_{ROWS - 1}""",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbProcess]:
    # With the default an update that looks through the table locks all of its rows.
    with running_mariadb(tmp_path_factory.mktemp("mariadb"), transaction_isolation="READ-COMMITTED") as server:
        for statement in TABLES:
            server.execute(statement)
        yield server


@pytest.fixture(scope="module")
def table(database: MariaDbProcess, kafka: str) -> PositionTable:
    table = PositionTable(database, USER, kafka, "maria")
    table.create_topics()
    return table


@pytest.fixture(scope="module")
def connect(
    database: MariaDbProcess, table: PositionTable, kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    signals = {"signal_data_collection": f"{USER}.signals", "incremental_snapshot_chunk_size": "100"}
    connector = mariadb_connector(database.server, kafka, ["positions", "signals"], topics="maria-$1", **signals)
    with running_connect(tmp_path_factory.mktemp("connect"), kafka, connector) as worker:
        yield worker


@pytest.fixture(scope="module")
def processor(
    connect: ConnectProcess, table: PositionTable, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Processor]:
    with table.running_processor(tmp_path_factory.mktemp("processor")) as running:
        yield running


@pytest.fixture
def is_exact(table: PositionTable, processor: Processor) -> Callable[[], None]:
    """Waits until each keyed topic equals the result of SQL; nothing may be set aside."""

    def wait() -> None:
        table.wait_exact(processor)
        assert table.letters() == set()

    return wait


@pytest.fixture
def sources(table: PositionTable, kafka: str) -> Callable[[], list[dict[str, Any]]]:
    """Gives `source` of each change of a row that the table's topic has had, without rows that were read."""

    def read() -> list[dict[str, Any]]:
        values = [json.loads(record.value) for record in read_topic(kafka, table.topic) if record.value]
        return [value["source"] for value in values if value["op"] != "r"]

    return read


def _change_while_open(database: MariaDbProcess, during: Callable[[], None]) -> None:
    """Changes many rows in a transaction that is open for as long as `during` takes."""
    with database.server.connection(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(SORT_MOVES)
        cursor.execute(GROUP_MOVES)
        during()
        connection.commit()


def test_the_initial_snapshot_and_the_changes_behind_it_are_exact(
    database: MariaDbProcess, connect: ConnectProcess, is_exact: Callable[[], None]
) -> None:
    database.transact(GROUP_MOVES, SORT_MOVES)

    is_exact()


def test_changes_of_each_kind_in_one_transaction_are_exact(
    database: MariaDbProcess, is_exact: Callable[[], None]
) -> None:
    database.transact(*CHANGES_OF_EACH_KIND)
    database.execute("UPDATE positions SET client = 'client-back' WHERE client IS NULL AND position_id % 20 = 1")

    is_exact()


def test_rows_of_one_event_take_effect_in_their_order(
    database: MariaDbProcess, is_exact: Callable[[], None], sources: Callable[[], list[dict[str, Any]]]
) -> None:
    # Each row takes the key that the row before it in the same event has left.
    shift = "UPDATE positions SET position_id = position_id + 1 WHERE exchange = 'X:Y' ORDER BY position_id DESC"
    database.execute(shift)

    is_exact()

    assert max(source["row"] for source in sources()) > 20


def test_the_last_of_many_changes_of_the_same_rows_counts(
    database: MariaDbProcess, is_exact: Callable[[], None]
) -> None:
    steps = [
        f"UPDATE positions SET client = 'client-{step % 5}', amount = amount + 1 WHERE position_id < 40"
        for step in range(25)
    ]
    twice = "INSERT INTO positions SELECT * FROM positions WHERE position_id < 20 ON DUPLICATE KEY UPDATE ticker = 'b'"
    put = "REPLACE INTO positions SELECT exchange, position_id, 'client-7', 'R', 1 FROM positions WHERE position_id < 9"
    database.transact(*steps, twice, put, "DELETE FROM positions WHERE position_id = 3")

    is_exact()


def test_changes_in_the_next_files_of_the_binlog_are_later(
    database: MariaDbProcess, is_exact: Callable[[], None], sources: Callable[[], list[dict[str, Any]]]
) -> None:
    for step in range(3):
        database.execute("FLUSH BINARY LOGS")
        database.execute(f"UPDATE positions SET amount = amount + 1 WHERE position_id % 4 = {step}")

    is_exact()

    assert len({source["file"] for source in sources()}) >= 3


def test_an_incremental_snapshot_beside_changes_is_exact(
    database: MariaDbProcess, table: PositionTable, is_exact: Callable[[], None]
) -> None:
    [(rows,)] = database.execute("SELECT count(*) FROM positions")
    wanted = table.records() + rows

    def snapshot() -> None:
        table.ask_for_snapshot("incremental")
        for step in range(28):
            database.execute(
                "UPDATE positions SET ticker = 'now' WHERE position_id = %s AND exchange = 'LON'", [step * 7 + 1]
            )
        table.wait_for_records(wanted)

    _change_while_open(database, snapshot)

    is_exact()


@pytest.mark.parametrize("of_type", ["blocking", "incremental"])
def test_a_snapshot_of_an_idle_table_and_the_change_right_behind_it_are_exact(
    database: MariaDbProcess, table: PositionTable, is_exact: Callable[[], None], of_type: str
) -> None:
    table.take_snapshot(of_type)
    database.execute("UPDATE positions SET client = 'client-last' WHERE position_id % 9 = 0")

    is_exact()


def test_a_blocking_snapshot_beside_an_open_transaction_is_exact(
    database: MariaDbProcess, table: PositionTable, is_exact: Callable[[], None]
) -> None:
    _change_while_open(database, partial(table.take_snapshot, "blocking"))

    is_exact()


def test_changes_around_a_restart_of_the_database_and_of_connect_are_exact(
    database: MariaDbProcess, connect: ConnectProcess, table: PositionTable, is_exact: Callable[[], None]
) -> None:
    before = table.records()
    database.execute("UPDATE positions SET client = 'client-4' WHERE position_id % 8 = 1")
    wait_until(lambda: table.records() > before, "Connect sends nothing")
    connect.kill()
    database.execute("UPDATE positions SET client = 'client-5', amount = amount + 1 WHERE position_id % 8 = 1")
    database.kill()
    database.start()
    database.execute("UPDATE positions SET amount = amount + 1 WHERE position_id % 8 = 1")
    connect.start()
    database.execute("DELETE FROM positions WHERE position_id % 16 = 1")
    database.stop()
    database.start()
    # The connector's task ends with its connection to the database, and does not come back by itself.
    connect.stop()
    connect.start()
    database.execute("UPDATE positions SET amount = amount + 1 WHERE position_id % 8 = 2")

    is_exact()
