"""The tables of a domain in a real PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry

from cdc_simulator.domain import DatabaseParameters, next_mutation
from cdc_simulator.domains import choose_domain, domain_names
from cdc_simulator.errors import DatabaseAwayError, DatabaseError, DatabaseInUseError
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.postgres import PostgresDatabase, PostgresTables, open_when_there
from cdc_simulator.publication import ReadByConnector
from cdc_simulator.settings import Settings
from cdc_simulator.simulator import Simulator
from statecast_service.errors import SettingsError
from testkit.cdc_simulator import ManualClock, memory_tables
from testkit.ports import free_port
from testkit.postgres import PROGRAMS, PostgresProcess, running_postgres
from testkit.service_process import ServiceProcess
from testkit.waiting import wait_until

pytestmark = pytest.mark.skipif(not PROGRAMS.is_dir(), reason="only a checkout of the repository has PostgreSQL")

NOW_US = 1_724_848_496_123_456
SMALL = DatabaseParameters(seed=1, rows=20, customers=5, items=10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@dataclass(frozen=True)
class NewDatabase:
    """An empty database of the server."""

    server: PostgresProcess
    url: str

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(PostgresDatabase(self.url, "test")) as database, database.transaction() as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def database(server: PostgresProcess) -> NewDatabase:
    name = f"db_{uuid4().hex[:8]}"
    server.execute(f"CREATE DATABASE {name}")
    return NewDatabase(server, server.server.dsn.rsplit("/", 1)[0] + f"/{name}")


@pytest.fixture
def open_tables(database: NewDatabase) -> Iterator[Callable[..., PostgresTables]]:
    """Opens the tables of a domain; those that were opened before are closed."""
    opened: list[PostgresDatabase] = []

    def open_(domain: str = "orders", parameters: DatabaseParameters = SMALL) -> PostgresTables:
        close()
        opened.append(PostgresDatabase(database.url, domain))
        tables = PostgresTables(opened[-1], choose_domain(domain))
        tables.open(parameters, NOW_US)
        return tables

    def close() -> None:
        while opened:
            opened.pop().close()

    yield open_
    close()


def play(tables: PostgresTables, domain: str, mutations: int) -> None:
    with tables.transaction(NOW_US) as now_us:
        for _ in range(mutations):
            number = tables.log_sequence_number + 1
            tables.apply(next_mutation(choose_domain(domain), tables.rows, SMALL, number, now_us))


def rows_in_memory(domain: str, mutations: int) -> dict[str, list[Any]]:
    """Returns the rows that the domain has after so many mutations, by table."""
    tables = memory_tables(choose_domain(domain), SMALL, NOW_US)
    first = sum(map(len, tables.values())) + 1
    for number in range(first, first + mutations):
        mutation = next_mutation(choose_domain(domain), tables, SMALL, number, NOW_US)
        tables[mutation.table].apply(mutation)
    return {name: [table.nth(index) for index in range(len(table))] for name, table in tables.items()}


def changes_made(database: NewDatabase) -> int:
    ((changes,),) = database.execute("SELECT log_sequence_number - snapshot_lsn FROM cdc_simulator.state")
    return int(changes)


def rows_of(tables: PostgresTables) -> dict[str, list[Any]]:
    with tables.transaction(NOW_US):
        return {name: [rows.nth(index) for index in range(len(rows))] for name, rows in tables.rows.items()}


@pytest.mark.parametrize("domain", domain_names())
def test_it_has_the_rows_that_the_seed_says_and_goes_on_after_a_restart(
    domain: str, open_tables: Callable[..., PostgresTables]
) -> None:
    play(open_tables(domain), domain, 60)
    tables = open_tables(domain)
    play(tables, domain, 60)

    assert rows_of(tables) == rows_in_memory(domain, 120)


def test_columns_have_the_contracts_names_and_databases_types(
    open_tables: Callable[..., PostgresTables], database: NewDatabase
) -> None:
    open_tables()

    columns = dict(
        database.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
            "WHERE attrelid = 'orders'::regclass AND attnum > 0"
        )
    )
    identity = database.execute("SELECT relreplident::text FROM pg_class WHERE relname = 'orders'")

    assert columns["order_id"] == "text"
    assert columns["items"] == "jsonb"
    assert columns["placed_at"] == "timestamp with time zone"
    assert identity == [("f",)]


def test_a_transaction_that_fails_leaves_nothing(open_tables: Callable[..., PostgresTables]) -> None:
    tables = open_tables()
    before = rows_of(tables)

    with pytest.raises(ZeroDivisionError), tables.transaction(NOW_US) as now_us:  # noqa: PT012  the block is the subject
        tables.apply(next_mutation(choose_domain("orders"), tables.rows, SMALL, 21, now_us))
        raise ZeroDivisionError

    assert rows_of(tables) == before
    assert tables.log_sequence_number == 20


def test_rows_that_others_remove_and_add_do_not_disturb_it(
    open_tables: Callable[..., PostgresTables], database: NewDatabase
) -> None:
    tables = open_tables()
    database.execute("DELETE FROM orders WHERE number BETWEEN 2 AND 10")
    database.execute(
        "INSERT INTO orders SELECT 'order-000021', 21, customer_id, status, items, total_cents, currency, "
        "placed_at, updated_at, estimated_delivery, tracking_number FROM orders WHERE number = 1"
    )

    play(tables, "orders", 60)

    assert tables.log_sequence_number == 80


@pytest.mark.parametrize(
    ("domain", "edits"),
    [
        ("orders", ["UPDATE orders SET placed_at = 'infinity', updated_at = '0044-03-15 BC'"]),
        ("orders", ["UPDATE orders SET status = 'shipped', estimated_delivery = ''"]),
        ("orders", ["UPDATE orders SET status = 'shipped', estimated_delivery = '9999-12-31'"]),
        ("orders", ["UPDATE orders SET status = 'placed', items = '[]'"]),
        (
            "orders",
            ["UPDATE orders SET items = '{}' WHERE number < 10", "UPDATE orders SET items = '[1]' WHERE number > 9"],
        ),
        ("bookings", ["UPDATE bookings SET customer_id = 'somebody', destination = 'nowhere'"]),
        ("positions", ["UPDATE open_positions SET client = 'somebody', ticker = 'none'"]),
        ("odds", ["UPDATE markets SET outcomes = '[]'", "UPDATE matches SET sport = 'chess'"]),
        (
            "invoices",
            ["UPDATE invoices SET customer_card_no = 'none', lines = '[]'", "UPDATE stores SET city = 'Paris'"],
        ),
    ],
)
def test_rows_that_others_change_do_not_end_it(
    domain: str, edits: list[str], open_tables: Callable[..., PostgresTables], database: NewDatabase
) -> None:
    tables = open_tables(domain)
    before = tables.log_sequence_number
    for edit in edits:
        database.execute(edit)

    play(tables, domain, 300)

    assert tables.log_sequence_number == before + 300


def test_a_row_of_others_under_the_id_of_the_next_is_left_to_them(
    open_tables: Callable[..., PostgresTables], database: NewDatabase
) -> None:
    tables = open_tables()
    database.execute("UPDATE orders SET order_id = 'order-000021' WHERE number = 1")

    play(tables, "orders", 60)

    assert database.execute("SELECT number FROM orders WHERE order_id = 'order-000021'") in ([(1,)], [])
    assert tables.log_sequence_number == 80


def test_rows_that_another_transaction_holds_are_waited_for(
    open_tables: Callable[..., PostgresTables], database: NewDatabase
) -> None:
    tables = open_tables()

    with closing(PostgresDatabase(database.url, "psql")) as other, other.transaction() as connection:
        connection.execute("SELECT 1 FROM orders FOR UPDATE")
        with pytest.raises(DatabaseAwayError, match="another transaction holds a row"):
            play(tables, "orders", 60)
    play(tables, "orders", 60)

    assert tables.log_sequence_number == 80


def test_what_is_left_of_a_lost_connection_is_no_second_simulator(
    open_tables: Callable[..., PostgresTables], database: NewDatabase, server: PostgresProcess
) -> None:
    tables = open_tables()
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cdc-simulator'")

    with closing(PostgresDatabase(database.url, "orders")) as left_over:
        with pytest.raises(DatabaseAwayError, match="is away"):
            play(tables, "orders", 60)
        with left_over.transaction(), pytest.raises(DatabaseAwayError, match="has not noticed the lost connection"):
            play(tables, "orders", 60)
    play(tables, "orders", 60)

    assert tables.log_sequence_number == 80


def test_a_server_that_was_killed_is_waited_for(
    open_tables: Callable[..., PostgresTables], server: PostgresProcess
) -> None:
    tables = open_tables()
    clock, readiness = ManualClock(NOW_US), Readiness("starting")
    metrics, settings = Metrics(CollectorRegistry()), Settings(rate=10, limit=50)
    parts = settings, readiness, metrics, clock
    simulator = Simulator(choose_domain("orders"), SMALL, tables, ReadByConnector(tables), *parts)

    def stop_after(seconds: float) -> Callable[[], bool]:
        end_s = clock.monotonic_s() + seconds
        return lambda: clock.monotonic_s() > end_s

    simulator.run(stop_after(2))
    reason_before = readiness.reason
    server.kill()
    simulator.run(stop_after(2))
    reason_while_away = readiness.reason
    server.start()
    simulator.run(lambda: False)

    assert reason_before is None
    assert "is away" in (reason_while_away or "")
    assert rows_of(tables).keys() == {"orders"}
    assert tables.log_sequence_number == 70


def test_a_simulator_that_was_killed_goes_on_where_it_stood(database: NewDatabase, tmp_path: Path) -> None:
    port, changes = free_port(), 400
    settings = {"sink": "postgres", "postgres_url": database.url, "metrics_port": port, "rate": 200, "limit": changes}
    with ServiceProcess("cdc_simulator", {**settings, **SMALL._asdict()}, tmp_path / "log", port) as simulator:
        simulator.start()
        wait_until(lambda: database.execute("SELECT 1 FROM pg_class WHERE relname = 'orders'"), lambda: simulator.log)
        wait_until(lambda: changes_made(database) > changes // 4, lambda: simulator.log)
        simulator.kill()
        made_before = changes_made(database)
        simulator.start()
        wait_until(lambda: simulator.exit_status is not None, lambda: simulator.log)

    rows = database.execute("SELECT number, customer_id, status FROM orders ORDER BY number")
    assert made_before < changes
    assert (simulator.exit_status, changes_made(database)) == (0, changes)
    assert rows == [(row.number, row.customer_id, row.status) for row in rows_in_memory("orders", changes)["orders"]]


def test_a_server_that_is_not_there_yet_is_waited_for(database: NewDatabase) -> None:
    nowhere = PostgresDatabase("postgresql://user:secret@127.0.0.1:1/orders", "orders")
    readiness, clock = Readiness(""), ManualClock(NOW_US)
    tables = PostgresTables(nowhere, choose_domain("orders"))

    opened = open_when_there(tables, SMALL, readiness, clock, lambda: clock.time_us > NOW_US + 1_000_000)

    assert not opened
    assert "PostgreSQL at 127.0.0.1:1/orders is away" in (readiness.reason or "")
    assert "secret" not in (readiness.reason or "")


def test_only_one_simulator_plays_a_domain(open_tables: Callable[..., PostgresTables], database: NewDatabase) -> None:
    open_tables()

    with closing(PostgresDatabase(database.url, "orders")) as second, pytest.raises(DatabaseInUseError, match="end it"):
        PostgresTables(second, choose_domain("orders")).open(SMALL, NOW_US)


def test_a_table_of_somebody_else_is_refused(open_tables: Callable[..., PostgresTables], database: NewDatabase) -> None:
    database.execute("CREATE TABLE orders (id int)")

    with pytest.raises(DatabaseError, match='relation "orders" already exists'):
        open_tables()


def test_other_parameters_are_refused(open_tables: Callable[..., PostgresTables]) -> None:
    open_tables()

    with pytest.raises(SettingsError, match=r"CDC_SIMULATOR_SEED=2: the tables at .* were made with 1"):
        open_tables(parameters=SMALL._replace(seed=2))


@pytest.mark.parametrize("values", [{"sink": "postgres"}, {"postgres_url": "postgresql://user@host/database"}])
def test_the_sink_and_the_url_are_set_together(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="CDC_SIMULATOR_POSTGRES_URL must be set for postgres, and for nothing else"):
        Settings(**values)
