"""The tables `stores` and `invoices`: their columns, and their rows as the contract has them."""

from collections.abc import Sequence
from typing import Any

from cdc_simulator.domain import SourceTable
from cdc_simulator.domains.invoices.rows import Address, CustomerType, InvoiceRow, Line, StoreRow
from cdc_simulator.timestamps import timestamp
from statecast.sales.v1 import invoice_pb2
from statecast.sales.v1.invoice_pb2 import DeliveryAddress, DeliveryType, Invoice, InvoiceChange, InvoiceLine
from statecast.sales.v1.store_pb2 import Store, StoreChange

STORES_DEFINITION = """
CREATE TABLE stores (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    store_id TEXT GENERATED ALWAYS AS (printf('store-%02d', number)) VIRTUAL,
    name TEXT NOT NULL,
    city TEXT NOT NULL
);
"""
INVOICES_DEFINITION = """
CREATE TABLE invoices (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    invoice_number TEXT GENERATED ALWAYS AS (printf('invoice-%06d', number)) VIRTUAL,
    store_id TEXT NOT NULL,
    customer_card_no TEXT NOT NULL,
    customer_type TEXT NOT NULL CHECK (customer_type IN ('prime', 'non-prime')),
    delivery_address TEXT, -- [address_line, city, postal_code, contact_number]; null when the goods are taken away
    lines TEXT NOT NULL CHECK (json_array_length(lines) > 0), -- [[code, description, quantity, price_cents], ...]
    total_amount_cents INTEGER NOT NULL,
    currency TEXT NOT NULL,
    created_at_us INTEGER NOT NULL
);
"""
CUSTOMER_TYPES = {
    CustomerType.PRIME: invoice_pb2.CUSTOMER_TYPE_PRIME,
    CustomerType.NON_PRIME: invoice_pb2.CUSTOMER_TYPE_NON_PRIME,
}


def store(row: StoreRow) -> Store:
    """Returns the row as the contract has it."""
    return Store(store_id=row.store_id, name=row.name, city=row.city)


def invoice(row: InvoiceRow) -> Invoice:
    """Returns the row as the contract has it."""
    address = row.delivery_address
    return Invoice(
        invoice_number=row.invoice_number,
        store_id=row.store_id,
        customer_card_no=row.customer_card_no,
        customer_type=CUSTOMER_TYPES[row.customer_type],
        delivery_type=DeliveryType.DELIVERY_TYPE_HOME_DELIVERY if address else DeliveryType.DELIVERY_TYPE_TAKE_AWAY,
        delivery_address=DeliveryAddress(**address._asdict()) if address else None,
        lines=[InvoiceLine(**line._asdict()) for line in row.lines],
        total_amount_cents=row.total_amount_cents,
        currency=row.currency,
        created_at=timestamp(row.created_at_us),
    )


def _invoice_row(values: Sequence[Any]) -> InvoiceRow:
    number, store_id, card, customer_type, address, lines, *others = values
    delivery_address = None if address is None else Address._make(address)
    return InvoiceRow(
        number, store_id, card, CustomerType(customer_type), delivery_address, tuple(map(Line._make, lines)), *others
    )


STORES = SourceTable(
    name="stores",
    topic="stores",
    definition=STORES_DEFINITION,
    row=StoreRow,
    row_id=lambda row: row.store_id,
    key=lambda row: row.store_id,
    message=store,
    change=StoreChange,
)
INVOICES = SourceTable(
    name="invoices",
    topic="invoices",
    definition=INVOICES_DEFINITION,
    row=InvoiceRow,
    json_fields=frozenset({"delivery_address", "lines"}),
    parse=_invoice_row,
    row_id=lambda row: row.invoice_number,
    key=lambda row: row.store_id,
    message=invoice,
    change=InvoiceChange,
)
