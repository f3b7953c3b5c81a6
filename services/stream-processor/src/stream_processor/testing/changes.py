"""Sample rows and changes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_DELETE, OPERATION_UPDATE
from statecast.orders.v1.order_pb2 import ORDER_STATUS_PLACED, Order, OrderChange

START = datetime(2024, 8, 28, 12, 0, tzinfo=UTC)
"""The second 0 of sample rows."""


def order(
    order_id: str = "order-1", customer: str = "customer-1", items: Iterable[str] = ("item-1",), second: float = 0
) -> Order:
    """A sound row that was placed at START and changed `second` seconds later."""
    row = Order(order_id=order_id, customer_id=customer, status=ORDER_STATUS_PLACED, currency="EUR")
    row.placed_at.FromDatetime(START)
    row.updated_at.FromDatetime(START + timedelta(seconds=second))
    for item in items:
        row.items.add(item_id=item, quantity=1, unit_price_cents=100)
    return row


def change(before: Order | None, after: Order | None, sequence: int, epoch: int = 1) -> OrderChange:
    """A sound change from one row to the other; None for no row."""
    operation = OPERATION_CREATE if before is None else OPERATION_DELETE if after is None else OPERATION_UPDATE
    made = OrderChange(operation=operation, before=before, after=after)
    made.source.epoch, made.source.log_sequence_number, made.source.table = epoch, sequence, "orders"
    made.source.commit_time.FromDatetime(START)
    return made
