"""Sample invoices and their changes."""

from collections.abc import Iterable

from statecast.change.v1.change_pb2 import OPERATION_CREATE, OPERATION_DELETE, OPERATION_SNAPSHOT, OPERATION_UPDATE
from statecast.sales.v1.invoice_pb2 import (
    CUSTOMER_TYPE_PRIME,
    DELIVERY_TYPE_HOME_DELIVERY,
    DELIVERY_TYPE_TAKE_AWAY,
    Invoice,
    InvoiceChange,
)
from stream_processor.testing.changes import START


def invoice(number: str = "invoice-1", items: Iterable[str] = ("item-1",), delivered: bool = True) -> Invoice:
    """A sound row of a PRIME customer's invoice over 250 hundredths per line, made at START."""
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
    """A sound change from one row to the other; None for no row."""
    operation = OPERATION_CREATE if before is None else OPERATION_DELETE if after is None else OPERATION_UPDATE
    made = InvoiceChange(operation=OPERATION_SNAPSHOT if snapshot else operation, before=before, after=after)
    made.source.epoch, made.source.log_sequence_number, made.source.table = 1, sequence, "invoices"
    made.source.commit_time.FromDatetime(START)
    return made
