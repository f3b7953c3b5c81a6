"""Orders as the contract has them."""

import pytest

from cdc_simulator.domains.orders.row import OrderRow, Status
from cdc_simulator.domains.orders.table import STATUSES, order
from statecast.orders.v1.order_pb2 import OrderItem, OrderStatus


def test_every_field_of_the_row_is_carried_over(row: OrderRow) -> None:
    message = order(row._replace(status=Status.SHIPPED, tracking_number="SC1"))

    assert message.order_id == "order-000042"
    assert message.customer_id == "customer-0003"
    assert message.status == OrderStatus.ORDER_STATUS_SHIPPED
    assert list(message.items) == [
        OrderItem(item_id="item-0001", quantity=2, unit_price_cents=150),
        OrderItem(item_id="item-0002", quantity=1, unit_price_cents=99),
    ]
    assert (message.total_cents, message.currency) == (399, "EUR")
    assert message.placed_at.ToMicroseconds() == 1_000_001
    assert message.updated_at.ToMicroseconds() == 2_000_002
    assert (message.estimated_delivery, message.tracking_number) == ("2024-08-28", "SC1")


def test_remembered_parts_are_not_shared_between_messages(row: OrderRow) -> None:
    first = order(row)
    first.placed_at.seconds = 5
    first.items[0].quantity = 5

    assert order(row).placed_at.seconds == 1
    assert order(row).items[0].quantity == 2


@pytest.mark.parametrize("name", list(OrderStatus.keys()))
def test_every_status_of_the_contract_is_known(name: str) -> None:
    known = set(STATUSES.values())

    assert (OrderStatus.Value(name) in known) == (name != "ORDER_STATUS_UNSPECIFIED")
