"""The chain of stores: stores, and the invoices of their terminals."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from random import Random
from typing import NamedTuple

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, Rows, SourceTable, StepContext, timestamp
from cdc_simulator.row_life_cycle import (
    RowLifeCycle,
    Step,
    aged_rows,
    another,
    another_number,
    delete,
    next_row_mutation,
)
from statecast.sales.v1 import invoice_pb2
from statecast.sales.v1.invoice_pb2 import DeliveryAddress, DeliveryType, Invoice, InvoiceChange, InvoiceLine
from statecast.sales.v1.store_pb2 import Store, StoreChange

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
        """The store's public id, for example `store-03`."""
        return f"store-{self.number:02d}"


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
        """The invoice's public id, for example `invoice-000042`."""
        return f"invoice-{self.number:06d}"


CUSTOMER_TYPES = {each: invoice_pb2.CustomerType.Value(f"CUSTOMER_TYPE_{each.name}") for each in CustomerType}


def store_message(row: StoreRow) -> Store:
    """Returns the row as the contract has it."""
    return Store(store_id=row.store_id, name=row.name, city=row.city)


def invoice_message(row: InvoiceRow) -> Invoice:
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


STORES = SourceTable(
    name="stores",
    definition="""
CREATE TABLE stores (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    store_id TEXT GENERATED ALWAYS AS (printf('store-%02d', number)) VIRTUAL,
    name TEXT NOT NULL,
    city TEXT NOT NULL
);
""",
    row=StoreRow,
    row_id=lambda row: row.store_id,
    key=lambda row: row.store_id,
    message=store_message,
    change=StoreChange,
)
INVOICES = SourceTable(
    name="invoices",
    definition="""
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
""",
    row=InvoiceRow,
    json_fields=frozenset({"delivery_address", "lines"}),
    parsers={
        "customer_type": CustomerType,
        "delivery_address": Address._make,
        "lines": lambda lines: tuple(map(Line._make, lines)),
    },
    row_id=lambda row: row.invoice_number,
    key=lambda row: row.store_id,
    message=invoice_message,
    change=InvoiceChange,
)


def create_store(number: int) -> StoreRow:
    """Returns one of the stores, numbered from 1 to STORE_COUNT, with its first name."""
    city = CITIES[number % len(CITIES)]
    return StoreRow(number, f"{city} {STORE_NAMES[number % len(STORE_NAMES)]}", city)


def rename_store(row: StoreRow, random: Random) -> StoreRow:
    """Returns the store with another name."""
    return row._replace(name=another([f"{row.city} {name}" for name in STORE_NAMES], row.name, random))


def create_invoice(number: int, context: StepContext) -> InvoiceRow:
    """Returns a new invoice of a random store for a random customer."""
    random, parameters, now_us = context
    items = random.sample(range(1, parameters.items + 1), 1 + random.randrange(min(MAX_LINES, parameters.items)))
    lines = tuple(_line(item, random) for item in items)
    return InvoiceRow(
        number,
        create_store(1 + random.randrange(STORE_COUNT)).store_id,
        _card(1 + random.randrange(parameters.customers)),
        CustomerType.PRIME if random.random() < PRIME_SHARE else CustomerType.NON_PRIME,
        _address(random) if random.random() < HOME_DELIVERY_SHARE else None,
        lines,
        _total(lines),
        CURRENCY,
        now_us,
    )


def _correct_quantity(row: InvoiceRow, context: StepContext) -> InvoiceRow:
    index = context.random.randrange(len(row.lines))
    line = row.lines[index]
    corrected = line._replace(item_quantity=another_number(MAX_QUANTITY, line.item_quantity, context.random))
    lines = (*row.lines[:index], corrected, *row.lines[index + 1 :])
    return row._replace(lines=lines, total_amount_cents=_total(lines))


def _correct_customer_type(row: InvoiceRow, context: StepContext) -> InvoiceRow:
    return row._replace(customer_type=another(tuple(CustomerType), row.customer_type, context.random))


def _correct_card(row: InvoiceRow, context: StepContext) -> InvoiceRow:
    present = int(row.customer_card_no) - FIRST_CARD
    return row._replace(customer_card_no=_card(another_number(context.parameters.customers, present, context.random)))


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


INVOICE_LIFE_CYCLE = RowLifeCycle(
    "invoices",
    create_invoice,
    (Step(40, _correct_quantity), Step(15, _correct_customer_type), Step(20, _correct_card), Step(25, delete)),
    creation_share=0.2,  # as many are voided as are made, or the table would not keep its size
)

RENAMING_SHARE = 0.01


def initial_rows(parameters: DatabaseParameters, now_us: int) -> Iterator[Mutation]:
    """Yields all stores, then the invoices."""
    for number in range(1, STORE_COUNT + 1):
        yield Mutation(STORES.name, None, create_store(number))
    yield from aged_rows(INVOICE_LIFE_CYCLE, parameters.rows, parameters, now_us)


def next_mutation(tables: Mapping[str, Rows], context: StepContext) -> Mutation:
    """Returns what happens to an invoice or, seldom, to a store."""
    if context.random.random() < RENAMING_SHARE:
        store = tables[STORES.name].nth(context.random.randrange(STORE_COUNT))
        return Mutation(STORES.name, store, rename_store(store, context.random))
    return next_row_mutation(tables[INVOICES.name], INVOICE_LIFE_CYCLE, context.parameters.rows, context)


DOMAIN = Domain("invoices", (STORES, INVOICES), initial_rows, next_mutation)
