"""The table `orders`: its columns, and its rows as the contract has them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from cdc_simulator.domain import SourceTable
from cdc_simulator.domains.orders.row import Item, OrderRow, Status
from cdc_simulator.timestamps import timestamp
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem, OrderStatus

DEFINITION = """
CREATE TABLE orders (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id TEXT GENERATED ALWAYS AS (printf('order-%06d', number)) VIRTUAL,
    customer_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('placed', 'paid', 'packed', 'shipped', 'delivered', 'cancelled')),
    items TEXT NOT NULL CHECK (json_array_length(items) > 0), -- [[item_id, quantity, unit_price_cents], ...]
    total_cents INTEGER NOT NULL,
    currency TEXT NOT NULL,
    placed_at_us INTEGER NOT NULL,
    updated_at_us INTEGER NOT NULL,
    estimated_delivery TEXT NOT NULL,
    tracking_number TEXT NOT NULL
);
"""
STATUSES = {
    Status.PLACED: OrderStatus.ORDER_STATUS_PLACED,
    Status.PAID: OrderStatus.ORDER_STATUS_PAID,
    Status.PACKED: OrderStatus.ORDER_STATUS_PACKED,
    Status.SHIPPED: OrderStatus.ORDER_STATUS_SHIPPED,
    Status.DELIVERED: OrderStatus.ORDER_STATUS_DELIVERED,
    Status.CANCELLED: OrderStatus.ORDER_STATUS_CANCELLED,
}


def order(row: OrderRow) -> Order:
    """Returns the row as the contract has it."""
    return Order(
        order_id=row.order_id,
        customer_id=row.customer_id,
        status=STATUSES[row.status],
        items=map(_item, row.items),
        total_cents=row.total_cents,
        currency=row.currency,
        placed_at=timestamp(row.placed_at_us),
        updated_at=timestamp(row.updated_at_us),
        estimated_delivery=row.estimated_delivery,
        tracking_number=row.tracking_number,
    )


# Remembered because the same few stand in most changes, and making them is much of the work of a change; the caller
# copies them, so that sharing them is safe.
@lru_cache(maxsize=16_384)
def _item(item: Item) -> OrderItem:
    return OrderItem(item_id=item.item_id, quantity=item.quantity, unit_price_cents=item.unit_price_cents)


def _row(values: Sequence[Any]) -> OrderRow:
    return OrderRow(values[0], values[1], Status(values[2]), tuple(map(Item._make, values[3])), *values[4:])


ORDERS = SourceTable(
    name="orders",
    topic="orders",
    definition=DEFINITION,
    row=OrderRow,
    json_fields=frozenset({"items"}),
    parse=_row,
    row_id=lambda row: row.order_id,
    key=lambda row: row.order_id,
    message=order,
    change=OrderChange,
)
