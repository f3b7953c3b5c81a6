"""Tables as teams have them, in a real PostgreSQL behind a real Debezium: the keyed topics equal the results of SQL.

The table has REPLICA IDENTITY DEFAULT, and rows before the connector starts, which come by snapshots that are asked for
by signals.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from statecast.descriptors import MessageTypes
from stream_processor.steps.dead_letters import REASON
from testkit.debezium import ConnectProcess, postgres_connector, running_connect
from testkit.postgres import PostgresProcess, running_postgres
from testkit.stream_processor import sales
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.position_table import CHANGES_OF_EACH_KIND, GROUP_MOVES, SORT_MOVES, PositionTable
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import count_records, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

ROWS = 3_000
FILL = f"""
INSERT INTO positions
    SELECT (ARRAY['LON', 'NASDAQ', 'X:Y'])[n % 3 + 1], n / 3, nullif('client-' || n % 11, 'client-0'), 'T' || n % 5, n
    FROM generate_series(0, {ROWS - 1}) AS n;
"""
TABLES = f"""
CREATE TABLE positions (
    exchange text, position_id int, client text, ticker text NOT NULL DEFAULT 'none', amount bigint NOT NULL,
    PRIMARY KEY (exchange, position_id));
CREATE TABLE sales (sale_id int PRIMARY KEY, shop text NOT NULL, price numeric(12, 2), amount bigint NOT NULL);
CREATE TABLE signals (id text PRIMARY KEY, type text NOT NULL, data text);
{FILL}
"""
WRONG = {
    "group_by": "client",
    "keep": {"members": {"key": "position_id", "sort": "amount"}},
    "dead_letters": {"limit": 5},
}
SALES_SOURCE = {"source": {"topic": "pg-sales", "message": sales.CHANGE, "format": "debezium-json"}}
OF_SALES: Mapping[str, Mapping[str, Any]] = {
    "dear": {**SALES_SOURCE, "group_by": "sale_id", "keep": "latest", "where": "price > 10.5"},
    "prices": {
        **SALES_SOURCE,
        "where": "price is not null",
        "group_by": "shop",
        "keep": {"members": {"key": "sale_id", "sort": "price"}},
    },
    "turnover": {
        **SALES_SOURCE,
        "group_by": "shop",
        "keep": {"aggregate": {"sales": "count(*)", "total": "sum(price * amount)"}},
        "sink": {"message": sales.TURNOVER},
    },
}
"""Of the table `sales`; its prices are numbers in SQL, though their field is a text."""
DEAR = "SELECT sale_id::text, sale_id, price::text FROM sales WHERE price > 10.5"
PRICES = """
SELECT shop || '|' || lpad(price::text, 13, '0') || '|' || sale_id, sale_id, price::text
FROM sales WHERE price IS NOT NULL
"""
TURNOVER = "SELECT shop, count(*), round(coalesce(sum(price * amount), 0), 2)::text FROM sales GROUP BY shop"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        server.execute(TABLES)
        yield server


@pytest.fixture(scope="module")
def table(database: PostgresProcess, kafka: str) -> PositionTable:
    table = PositionTable(database, "public", kafka, "pg")
    table.create_topics("wrong", "sales", "sales.dead-letter", *OF_SALES)
    return table


@pytest.fixture(scope="module")
def connect(
    database: PostgresProcess, table: PositionTable, kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    asked = {"signal_data_collection": "public.signals", "snapshot_mode": "no_data"}
    more = {"incremental_snapshot_chunk_size": "200", "decimal_handling_mode": "string"}
    more["skipped_operations"] = "none"
    connector = postgres_connector(database.server, ["positions", "sales", "signals"], topics="pg-$1", **asked, **more)
    with running_connect(tmp_path_factory.mktemp("connect"), kafka, connector) as worker:
        yield worker


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the messages of the table `sales`."""
    return sales.mount(tmp_path_factory.mktemp("messages"))


@pytest.fixture(scope="module")
def processor(
    connect: ConnectProcess, table: PositionTable, messages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Processor]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("STATECAST_DESCRIPTORS", str(messages))
        with table.running_processor(tmp_path_factory.mktemp("processor"), {"wrong": WRONG, **OF_SALES}) as running:
            yield running


@pytest.fixture
def is_exact(table: PositionTable, processor: Processor) -> Callable[[], None]:
    """Waits until each keyed topic equals the result of SQL; only the wrong pipeline has set anything aside."""

    def wait() -> None:
        table.wait_exact(processor)
        assert {pipelines for pipelines, _ in table.letters()} == {"pg-wrong"}

    return wait


def _change_while_open(database: PostgresProcess, during: Callable[[], None]) -> None:
    """Changes every row in a transaction that is open for as long as `during` takes."""
    with psycopg.connect(database.server.dsn) as connection:
        connection.execute(SORT_MOVES)
        connection.execute(GROUP_MOVES)
        during()


def test_an_incremental_snapshot_beside_changes_is_exact(
    database: PostgresProcess, table: PositionTable, is_exact: Callable[[], None]
) -> None:
    def snapshot() -> None:
        table.ask_for_snapshot("incremental")
        for step in range(60):
            database.execute(
                "UPDATE positions SET ticker = 'now' WHERE position_id = %s AND exchange = 'LON'", [step * 7 + 1]
            )
        table.wait_for_records(ROWS)

    _change_while_open(database, snapshot)

    is_exact()


def test_changes_without_rows_before_them_are_exact(database: PostgresProcess, is_exact: Callable[[], None]) -> None:
    database.execute("; ".join(CHANGES_OF_EACH_KIND))
    database.execute("UPDATE positions SET client = 'client-back' WHERE client IS NULL AND position_id % 20 = 1")

    is_exact()


@pytest.mark.parametrize("of_type", ["blocking", "incremental"])
def test_a_snapshot_of_an_idle_table_and_the_change_right_behind_it_are_exact(
    database: PostgresProcess, table: PositionTable, is_exact: Callable[[], None], of_type: str
) -> None:
    # To read the rows then writes nothing into the log, and the next change begins where the snapshot stands.
    database.execute("VACUUM positions")
    table.take_snapshot(of_type)
    database.execute("UPDATE positions SET client = 'client-last' WHERE position_id % 9 = 0")

    is_exact()


def test_a_blocking_snapshot_beside_an_open_transaction_is_exact(
    database: PostgresProcess, table: PositionTable, is_exact: Callable[[], None]
) -> None:
    _change_while_open(database, partial(table.take_snapshot, "blocking"))

    is_exact()


def _truncate_amid_changes(database: PostgresProcess) -> None:
    """Changes rows before and after a TRUNCATE, in its transaction and beside it; the table has half of ROWS then."""
    database.execute("UPDATE positions SET client = 'client-before', amount = amount + 1 WHERE position_id % 3 = 0")
    with psycopg.connect(database.server.dsn) as connection:
        connection.execute("INSERT INTO positions VALUES ('PARIS', -1, 'client-gone', 'T', 1)")
        connection.execute("UPDATE positions SET client = 'client-gone' WHERE position_id % 5 = 0")
        connection.execute("TRUNCATE positions")
        connection.execute(FILL)
        connection.execute("DELETE FROM positions WHERE position_id % 2 = 0")
    database.execute("UPDATE positions SET client = 'client-after', amount = amount + 2 WHERE position_id % 5 = 1")


def test_a_truncation_amid_changes_is_exact(
    database: PostgresProcess, is_exact: Callable[[], None], processor: Processor
) -> None:
    _truncate_amid_changes(database)

    is_exact()

    counter = 'stream_processor_truncated_rows_total{query="pg-members"}'
    wait_until(lambda: counter in processor.get("/metrics")[1], lambda: processor.get("/metrics")[1])
    assert "the source's table was truncated" in processor.log


@pytest.mark.parametrize("written", [True, False])
def test_a_kill_around_a_truncation_loses_nothing(
    database: PostgresProcess, is_exact: Callable[[], None], processor: Processor, written: bool
) -> None:
    _truncate_amid_changes(database)
    if written:
        is_exact()
    processor.kill()
    database.execute("UPDATE positions SET client = 'client-late' WHERE position_id % 7 = 1")
    database.execute("TRUNCATE positions")
    database.execute(FILL)
    processor.start_ready()
    database.execute("UPDATE positions SET amount = amount + 3 WHERE position_id % 2 = 1")

    is_exact()


def test_a_pipeline_that_would_take_two_rows_for_one_stands_still_alone(
    database: PostgresProcess,
    table: PositionTable,
    is_exact: Callable[[], None],
    processor: Processor,
    kafka: str,
) -> None:
    database.execute("UPDATE positions SET ticker = 'after all'")

    is_exact()

    assert table.letters() == {
        ("pg-wrong", "the record's key has exchange, which keep.members.key lacks: two rows would be one")
    }
    assert read_topic(kafka, "pg-wrong") == []
    assert "the limit is 5 of pg-wrong" in processor.log
    assert 'stream_processor_query_up{query="pg-wrong"} 0.0' in processor.get("/metrics")[1]


@pytest.fixture
def sales_are_exact(database: PostgresProcess, processor: Processor, messages: Path, kafka: str) -> Callable[[], None]:
    """Waits until the pipelines' rows of the sales equal the result of SQL."""
    types = MessageTypes.read(messages)

    def held(topic: str, message: str, *fields: str) -> dict[str, tuple[object, ...]]:
        rows = {
            key.replace("\0", "|"): types.message_class(message).FromString(state.payload)
            for key, state in read_fenced(read_topic(kafka, topic)).items()
        }
        return {key: tuple(getattr(row, field) for field in fields) for key, row in rows.items()}

    def wait_for(query: str, *kept: str) -> None:
        expected = {row[0]: row[1:] for row in database.execute(query)}

        def difference() -> str:
            return f"{sorted(held(*kept).items() ^ expected.items())[:6]} {processor.log[-3000:]}"

        wait_until(lambda: held(*kept) == expected, difference, interval_s=0.5)

    def wait() -> None:
        wait_for(DEAR, "pg-dear", sales.ROW, "sale_id", "price")
        wait_for(PRICES, "pg-prices", sales.ROW, "sale_id", "price")
        wait_for(TURNOVER, "pg-turnover", sales.TURNOVER, "sales", "total")

    return wait


def test_decimals_are_numbers_to_sql_and_their_sums_exact(
    database: PostgresProcess, sales_are_exact: Callable[[], None]
) -> None:
    database.execute(
        """
        INSERT INTO sales SELECT n, 'shop-' || n % 3, n * 1.07, n * 9000000000 FROM generate_series(1, 200) AS n;
        INSERT INTO sales VALUES (1001, 'shop-1', 9999999999.99, 900000000000000), (1002, 'shop-1', NULL, 3),
            (1003, 'shop-none', NULL, 1), (1004, 'shop-2', 0, 5), (1005, 'shop-2', 10.50, 1),
            (1006, 'shop-2', 10.51, 1);
        """
    )
    sales_are_exact()

    database.execute(
        """
        UPDATE sales SET price = price - 5 WHERE price >= 5;
        UPDATE sales SET shop = 'shop-none' WHERE sale_id % 10 = 0;
        UPDATE sales SET price = NULL WHERE sale_id % 10 = 1;
        DELETE FROM sales WHERE sale_id % 10 = 2;
        """
    )
    sales_are_exact()


def test_a_value_that_is_no_decimal_of_its_field_is_a_dead_letter(
    database: PostgresProcess, sales_are_exact: Callable[[], None], kafka: str
) -> None:
    sales_are_exact()
    database.execute("INSERT INTO sales VALUES (5000, 'shop-1', 'NaN', 1)")
    topic = "pg-sales.dead-letter"
    wait_until(lambda: count_records(kafka, topic) > 0, "no dead letter")

    reasons = {record.headers[REASON].decode() for record in read_topic(kafka, topic)}

    assert reasons == {"after.price is not a decimal(12,2): NAN"}  # as the connector writes it
    database.execute("DELETE FROM sales WHERE sale_id = 5000")
    sales_are_exact()
