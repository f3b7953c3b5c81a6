"""Orders are in a real PostgreSQL, and Debezium publishes their changes: a phone sees the effect of the SQL."""

from collections.abc import Iterator, Sequence

import pytest
from drivers.gateway_client import GatewayClient, client_of
from drivers.lookups import InstanceStore
from drivers.order_table import OrderTable
from drivers.pipeline_models import STORES, expected

from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from statecast.orders.v1.order_pb2 import Order
from testkit.waiting import eventually, scaled

pytestmark = pytest.mark.timeout(600)

ALICE, BOB = "customer-0001", "customer-0002"
CHANGES_BETWEEN_KILLS = 50
CUSTOMERS, ITEMS, ORDERS = 50, 100, 3_000
EVER = {
    "orders-by-key": {f"order-{number:06d}" for number in range(1, ORDERS)},
    "orders-by-customer": {f"customer-{number:04d}" for number in range(1, CUSTOMERS + 1)},
    "orders-by-item": {f"item-{number:04d}" for number in range(1, ITEMS + 1)},
}
"""Groups that a store of orders may ever have had, so that one that should be empty is looked at too."""


@pytest.fixture(scope="module")
def postgres_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack with a simulator that writes to PostgreSQL."""
    settings = Settings(
        directory=tmp_path_factory.mktemp("postgres-stack"),
        source="postgres",
        rate=10,
        customers=CUSTOMERS,
        items=ITEMS,
        orders=500,
        start_timeout_s=scaled(240),
        restart_max_s=0.5,
        restart_limit=1000,
    )
    with running_stack(settings) as running:
        yield running


@pytest.fixture
def table(postgres_stack: RunningStack) -> OrderTable:
    database = postgres_stack.file.database
    assert database is not None
    return OrderTable(database.url)


@pytest.fixture
def phone(postgres_stack: RunningStack) -> GatewayClient:
    """That of customer-0001."""
    return client_of(postgres_stack, "alice")


def test_an_update_by_sql_reaches_a_subscriber(table: OrderTable, phone: GatewayClient) -> None:
    order_id = table.place(-1, ALICE)
    with phone.watch(order_id) as watch:
        # Behind the rows of the snapshot, which the connector and the pipelines have only begun with.
        watch.until_status(order_id, "Placed", timeout_s=120)
        table.execute("UPDATE orders SET status = 'shipped', tracking_number = '1Z999' WHERE order_id = %s", order_id)
        shipped = watch.until_status(order_id, "Shipped")
        table.execute("DELETE FROM orders WHERE order_id = %s", order_id)
        watch.until_status(order_id, "Deleted")

    assert shipped["data"] == {
        "order_id": order_id,
        "status": "Shipped",
        "estimated_delivery": "",
        "tracking_number": "1Z999",
    }


PROCESSOR = pytest.param(("stream-processor",), id="processor")
SOURCE = pytest.param(("connect", "postgres", "connect"), id="source", marks=pytest.mark.long)


@pytest.mark.parametrize("victims", [PROCESSOR, SOURCE])
def test_after_kills_every_instance_holds_what_sql_says(
    table: OrderTable, postgres_stack: RunningStack, victims: Sequence[str]
) -> None:
    for victim in victims:
        _wait_for_changes(table)
        postgres_stack.kill(victim)
        postgres_stack.wait_ready(victim, scaled(120))
    _wait_for_changes(table)
    moved = table.execute("UPDATE orders SET customer_id = %s WHERE customer_id = %s RETURNING number", BOB, ALICE)
    postgres_stack.stop("cdc-simulator")

    truth = table.orders()
    assert moved
    for query in postgres_stack.file.queries:
        eventually(lambda address=query.shard_address: _assert_holds(address, truth), timeout_s=180)  # type: ignore[misc]
    postgres_stack.start("cdc-simulator")
    postgres_stack.wait_ready("cdc-simulator", scaled(60))


def _wait_for_changes(table: OrderTable) -> None:
    goal = table.changes_made() + CHANGES_BETWEEN_KILLS

    def assert_made() -> None:
        assert table.changes_made() >= goal, "the simulator makes no changes"

    eventually(assert_made, timeout_s=60)


def _assert_holds(shard_address: str, truth: list[Order]) -> None:
    instance = InstanceStore(shard_address)
    try:
        for store, keys in STORES.items():
            groups = EVER[store] | {key[0] for order in truth for key in keys(order)}
            read = instance.values if store == "orders-by-key" else instance.members
            held, true = read(store, groups), expected(truth, keys)
            wrong = {key for key in held.keys() | true.keys() if held.get(key) != true.get(key)}
            assert not wrong, f"{store} at {shard_address}: {len(wrong)} differ, as {sorted(wrong)[:3]}"
    finally:
        instance.close()
