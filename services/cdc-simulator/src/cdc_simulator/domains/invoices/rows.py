"""The rows of the tables `stores` and `invoices`."""

from enum import StrEnum
from typing import NamedTuple


def store_id(number: int) -> str:
    """Returns the id of a store as the rest of the world knows it, for example `store-03`."""
    return f"store-{number:02d}"


class StoreRow(NamedTuple):
    """One store; `number` is the primary key."""

    number: int
    name: str
    city: str

    @property
    def store_id(self) -> str:
        """As the rest of the world knows it."""
        return store_id(self.number)


class CustomerType(StrEnum):
    """How a customer takes part in the loyalty programme; the values stand in the table."""

    PRIME = "prime"
    NON_PRIME = "non-prime"


class Address(NamedTuple):
    """Where goods are sent to."""

    address_line: str
    city: str
    postal_code: str
    contact_number: str


class Line(NamedTuple):
    """One line of an invoice; the price is that of one piece."""

    item_code: str
    item_description: str
    item_quantity: int
    item_price_cents: int


class InvoiceRow(NamedTuple):
    """One invoice. Times are microseconds since 1970 UTC; without an address it is taken away; `number` is the key."""

    number: int
    store_id: str
    customer_card_no: str
    customer_type: CustomerType
    delivery_address: Address | None
    lines: tuple[Line, ...]
    total_amount_cents: int
    currency: str
    created_at_us: int

    @property
    def invoice_number(self) -> str:
        """As the rest of the world knows it, for example `invoice-000042`."""
        return f"invoice-{self.number:06d}"
