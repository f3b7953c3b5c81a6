"""What the plain topics of the invoices' pipelines must hold, computed from the change log alone."""

from collections.abc import Iterable

from drivers.model_changes import written
from drivers.model_invoices import points
from drivers.model_keys import Plain, plain
from statecast.change.v1.change_pb2 import Operation
from statecast.sales.v1.home_delivery_pb2 import HomeDelivery
from statecast.sales.v1.invoice_pb2 import CustomerType, DeliveryType, Invoice, InvoiceChange, InvoiceLine
from statecast.sales.v1.loyalty_notification_pb2 import LoyaltyNotification
from statecast.sales.v1.masked_line_pb2 import MaskedLine

NEW = (Operation.OPERATION_CREATE, Operation.OPERATION_SNAPSHOT)
NEW_OR_CHANGED = (*NEW, Operation.OPERATION_UPDATE)
DIGITS_SHOWN = 4


def home_delivery(changes: Iterable[InvoiceChange]) -> Plain:
    """One value for each time that an invoice was made or changed whose goods the store sends."""
    return plain(
        HomeDelivery(
            invoice_number=row.invoice_number,
            store_id=row.store_id,
            address=row.delivery_address,
            created_at=row.created_at,
        )
        for row in written(changes, *NEW_OR_CHANGED)
        if row.delivery_type == DeliveryType.DELIVERY_TYPE_HOME_DELIVERY
    )


def loyalty_notifications(changes: Iterable[InvoiceChange]) -> Plain:
    """One value for each new invoice of a PRIME customer."""
    return plain(
        LoyaltyNotification(
            invoice_number=row.invoice_number,
            customer_card_no=row.customer_card_no,
            total_amount_cents=row.total_amount_cents,
            earned_points=points(row),
        )
        for row in written(changes, *NEW)
        if row.customer_type == CustomerType.CUSTOMER_TYPE_PRIME
    )


def masked_lines(changes: Iterable[InvoiceChange]) -> Plain:
    """One value for each line, each time that its invoice was made or changed."""
    return plain(_masked(row, line) for row in written(changes, *NEW_OR_CHANGED) for line in row.lines)


def _masked(row: Invoice, line: InvoiceLine) -> MaskedLine:
    card = row.customer_card_no
    hidden = max(0, len(card) - DIGITS_SHOWN)
    return MaskedLine(
        invoice_number=row.invoice_number,
        store_id=row.store_id,
        created_at=row.created_at,
        customer_type=row.customer_type,
        delivery_type=row.delivery_type,
        city=row.delivery_address.city,
        item_code=line.item_code,
        item_quantity=line.item_quantity,
        item_price_cents=line.item_price_cents,
        customer_card_masked="*" * hidden + card[hidden:],
    )
