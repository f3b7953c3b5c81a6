"""Changes as the contract has them."""

from datetime import UTC, datetime

import pytest

from cdc_simulator.change_events import OPERATIONS, STATUSES, order_change
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.order_row import OrderRow, Status
from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import OrderChange, OrderItem, OrderStatus

COMMIT_US = 1_724_848_496_123_456


def change(before: OrderRow | None, after: OrderRow | None, *, snapshot: bool = False) -> OrderChange:
    return order_change(LoggedChange(9, "tx-8", COMMIT_US, snapshot, before, after), 77, COMMIT_US + 5)


def test_every_field_of_the_row_is_carried_over(row: OrderRow) -> None:
    order = change(None, row._replace(status=Status.SHIPPED, tracking_number="SC1")).after

    assert order.order_id == "order-000042"
    assert order.customer_id == "customer-0003"
    assert order.status == OrderStatus.ORDER_STATUS_SHIPPED
    assert list(order.items) == [
        OrderItem(item_id="item-0001", quantity=2, unit_price_cents=150),
        OrderItem(item_id="item-0002", quantity=1, unit_price_cents=99),
    ]
    assert (order.total_cents, order.currency) == (399, "EUR")
    assert order.placed_at.ToMicroseconds() == 1_000_001
    assert order.updated_at.ToMicroseconds() == 2_000_002
    assert (order.estimated_delivery, order.tracking_number) == ("2024-08-28", "SC1")


def test_the_source_says_where_and_when(row: OrderRow) -> None:
    event = change(None, row)

    assert (event.source.epoch, event.source.log_sequence_number) == (77, 9)
    assert (event.source.transaction_id, event.source.table) == ("tx-8", "orders")
    assert event.source.commit_time.ToDatetime(UTC) == datetime(2024, 8, 28, 12, 34, 56, 123456, UTC)
    assert event.captured_at.ToMicroseconds() == COMMIT_US + 5


def test_an_insert_has_no_before(row: OrderRow) -> None:
    event = change(None, row)

    assert event.operation == Operation.OPERATION_CREATE
    assert (event.HasField("before"), event.HasField("after"), event.source.snapshot) == (False, True, False)


def test_an_update_has_both(row: OrderRow) -> None:
    event = change(row, row._replace(total_cents=1))

    assert event.operation == Operation.OPERATION_UPDATE
    assert (event.before.total_cents, event.after.total_cents) == (399, 1)


def test_a_delete_has_no_after(row: OrderRow) -> None:
    event = change(row, None)

    assert event.operation == Operation.OPERATION_DELETE
    assert (event.HasField("before"), event.HasField("after")) == (True, False)


def test_a_row_of_the_snapshot_says_so(row: OrderRow) -> None:
    event = change(None, row, snapshot=True)

    assert event.operation == Operation.OPERATION_SNAPSHOT
    assert event.source.snapshot


def test_remembered_parts_are_not_shared_between_changes(row: OrderRow) -> None:
    first = change(None, row)
    first.after.placed_at.seconds = 5
    first.after.items[0].quantity = 5

    assert change(None, row).after.placed_at.seconds == 1
    assert change(None, row).after.items[0].quantity == 2


@pytest.mark.parametrize("name", list(OrderStatus.keys()))
def test_every_status_of_the_contract_is_known(name: str) -> None:
    known = set(STATUSES.values())

    assert (OrderStatus.Value(name) in known) == (name != "ORDER_STATUS_UNSPECIFIED")


def test_every_operation_of_the_contract_is_known() -> None:
    assert set(OPERATIONS.values()) == set(Operation.values()) - {Operation.OPERATION_UNSPECIFIED}
