"""The chain of stores: a table of stores, and the invoices that their terminals send, each of which is an event."""

from collections.abc import Iterator, Mapping
from enum import Enum, StrEnum
from random import Random
from typing import NamedTuple

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, Rows, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another, delete, random_row
from cdc_simulator.source_table import SourceTable
from statecast.sales.v1.invoice_pb2 import Invoice
from statecast.sales.v1.store_pb2 import StoreChange

STORE_COUNT = 8
CITIES = ("Bengaluru", "Chennai", "Delhi", "Hyderabad", "Kolkata", "Mumbai", "Mysuru", "Pune")
STORE_NAMES = ("Bazaar", "Corner", "Market", "Plaza", "Square", "Yard")
CURRENCY = "INR"
MAX_LINES = 4
MAX_QUANTITY = 9
PRIME_SHARE = 0.6
HOME_DELIVERY_SHARE = 0.4
FIRST_CARD = 4_000_000_000_000_000


class StoreRow(NamedTuple):
    """One store; `number` is the primary key."""

    number: int
    name: str
    city: str

    @property
    def store_id(self) -> str:
        return f"store-{self.number:02d}"


class CustomerType(StrEnum):
    """How a customer takes part in the loyalty programme; the values stand in the table."""

    PRIME = "prime"
    NON_PRIME = "non-prime"


DeliveryType = Enum("DeliveryType", ("HOME_DELIVERY", "TAKE_AWAY"))


class Address(NamedTuple):
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
        return f"invoice-{self.number:06d}"

    @property
    def delivery_type(self) -> DeliveryType:
        return DeliveryType.HOME_DELIVERY if self.delivery_address else DeliveryType.TAKE_AWAY


STORES = SourceTable("stores", StoreRow, StoreChange, virtual={"store_id": "printf('store-%02d', number)"})
INVOICES = SourceTable(
    "invoices", InvoiceRow, Invoice, virtual={"invoice_number": "printf('invoice-%06d', number)"}, key="store_id"
)


def create_store(number: int) -> StoreRow:
    """Returns one of the stores, numbered from 1 to STORE_COUNT, with its first name."""
    city = CITIES[number % len(CITIES)]
    return StoreRow(number, f"{city} {STORE_NAMES[number % len(STORE_NAMES)]}", city)


def rename_store(row: StoreRow, random: Random) -> StoreRow:
    return row._replace(name=another([f"{row.city} {name}" for name in STORE_NAMES], row.name, random))


def create_invoice(number: int, context: StepContext) -> InvoiceRow:
    random, parameters, now_us = context
    items = random.sample(range(1, parameters.items + 1), 1 + random.randrange(min(MAX_LINES, parameters.items)))
    lines = tuple(_line(item, random) for item in items)
    store_id = create_store(1 + random.randrange(STORE_COUNT)).store_id
    card = _card(1 + random.randrange(parameters.customers))
    customer_type = CustomerType.PRIME if random.random() < PRIME_SHARE else CustomerType.NON_PRIME
    address = _address(random) if random.random() < HOME_DELIVERY_SHARE else None
    return InvoiceRow(number, store_id, card, customer_type, address, lines, _total(lines), CURRENCY, now_us)


def _card(number: int) -> str:
    return str(FIRST_CARD + number)


def _line(number: int, random: Random) -> Line:
    price_cents = 250 + number * 7919 % 19_750
    return Line(f"item-{number:04d}", f"Article {number}", 1 + random.randrange(MAX_QUANTITY), price_cents)


def _total(lines: tuple[Line, ...]) -> int:
    return sum(line.item_quantity * line.item_price_cents for line in lines)


def _address(random: Random) -> Address:
    street = f"{1 + random.randrange(200)} Station Road"
    return Address(street, random.choice(CITIES), f"{random.randrange(10**6):06d}", f"9{random.randrange(10**9):09d}")


# Terminals never correct an invoice. They forget as many as they make, or the table would not keep its size.
INVOICE_LIFE_CYCLE = RowLifeCycle("invoices", create_invoice, (Step(1, delete),), creation_share=0.5)

RENAMING_SHARE = 0.01


def initial_rows(parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
    for number in range(1, STORE_COUNT + 1):
        yield Mutation(STORES.name, None, create_store(number))
    yield from INVOICE_LIFE_CYCLE.initial_rows(parameters, now_us)


def next_mutation(tables: Mapping[str, Rows], context: StepContext) -> Mutation:
    """Returns the next mutation of an invoice or, seldom, of a store."""
    renamed = context.random.random() < RENAMING_SHARE
    store = random_row(tables[STORES.name], context.random) if renamed else None
    if store is not None:
        return Mutation(STORES.name, store, rename_store(store, context.random))
    return INVOICE_LIFE_CYCLE.next_mutation(tables, context)


DOMAIN = Domain("invoices", (STORES, INVOICES), initial_rows, next_mutation)
