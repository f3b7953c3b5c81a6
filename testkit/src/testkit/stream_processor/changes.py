"""Sample orders and invoices, and their changes."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_DELETE, OPERATION_SNAPSHOT, OPERATION_UPDATE
from statecast.orders.v1.order_pb2 import ORDER_STATUS_PLACED, Order, OrderChange
from statecast.sales.v1.invoice_pb2 import (
    CUSTOMER_TYPE_PRIME,
    DELIVERY_TYPE_HOME_DELIVERY,
    DELIVERY_TYPE_TAKE_AWAY,
    Invoice,
    InvoiceChange,
)

POSITION_CHANGES = {
    "topic": "open-positions",
    "message": "statecast.portfolio.v1.OpenPositionChange",
    "key": "position_id",
}
"""The source of us-share-holders without the pipeline before it."""
INVOICE_CHANGES = {"topic": "invoices", "message": "statecast.sales.v1.InvoiceChange"}
"""Changes of invoices, for the pipelines that ship for events."""
INVOICE_ROWS = {**INVOICE_CHANGES, "key": "invoice_number"}
"""The same for an aggregate and for running totals, which need to know the rows."""
LOYALTY_OF_CHANGES = {
    "source": INVOICE_ROWS,
    "keep": {
        "route": {"operations": ["create", "snapshot"], "totals": {"total_points": "sum(total_amount_cents div 100)"}}
    },
}
"""The difference of loyalty-notifications with changes: only new invoices give records."""
START = datetime(2024, 8, 28, 12, 0, tzinfo=UTC)
"""The second 0 of sample rows."""


def order(
    order_id: str = "order-1", customer: str = "customer-1", items: Iterable[str] = ("item-1",), second: float = 0
) -> Order:
    """Returns a sound row that was placed at START and changed `second` seconds later."""
    row = Order(order_id=order_id, customer_id=customer, status=ORDER_STATUS_PLACED, currency="EUR")
    row.placed_at.FromDatetime(START)
    row.updated_at.FromDatetime(START + timedelta(seconds=second))
    for item in items:
        row.items.add(item_id=item, quantity=1, unit_price_cents=100)
    return row


def change(before: Order | None, after: Order | None, sequence: int, epoch: int = 1) -> OrderChange:
    """Returns a sound change from one row to the other; None for no row."""
    operation = OPERATION_CREATE if before is None else OPERATION_DELETE if after is None else OPERATION_UPDATE
    message = OrderChange(operation=operation, before=before, after=after)
    message.source.epoch, message.source.log_sequence_number, message.source.table = epoch, sequence, "orders"
    message.source.commit_time.FromDatetime(START)
    return message


def invoice(number: str = "invoice-1", items: Iterable[str] = ("item-1",), delivered: bool = True) -> Invoice:
    """Returns a sound row of a PRIME customer's invoice over 250 hundredths per line, made at START."""
    row = Invoice(invoice_number=number, store_id="store-1", customer_card_no="1234567890", currency="INR")
    row.customer_type = CUSTOMER_TYPE_PRIME
    row.delivery_type = DELIVERY_TYPE_HOME_DELIVERY if delivered else DELIVERY_TYPE_TAKE_AWAY
    if delivered:
        row.delivery_address.city, row.delivery_address.postal_code = "Pune", "411001"
    row.created_at.FromDatetime(START)
    for item in items:
        row.lines.add(item_code=item, item_quantity=1, item_price_cents=250)
        row.total_amount_cents += 250
    return row


def invoice_change(
    before: Invoice | None, after: Invoice | None, sequence: int = 1, snapshot: bool = False
) -> InvoiceChange:
    """Returns a sound change from one row to the other; None for no row."""
    operation = OPERATION_CREATE if before is None else OPERATION_DELETE if after is None else OPERATION_UPDATE
    message = InvoiceChange(operation=OPERATION_SNAPSHOT if snapshot else operation, before=before, after=after)
    message.source.epoch, message.source.log_sequence_number, message.source.table = 1, sequence, "invoices"
    message.source.commit_time.FromDatetime(START)
    return message
