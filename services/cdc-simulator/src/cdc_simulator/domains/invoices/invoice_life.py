"""The legal steps in the life of an invoice: made, corrected, voided; pure."""

from random import Random

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, another, another_number, end, take_step
from cdc_simulator.domains.invoices.rows import Address, CustomerType, InvoiceRow, Line, store_id
from cdc_simulator.domains.invoices.store_life import CITIES, STORES
from cdc_simulator.life import Life

CURRENCY = "INR"
MOST_LINES = 4
HIGHEST_QUANTITY = 9
PRIME_CHANCE = 0.6
HOME_DELIVERY_CHANCE = 0.4
STEADY_CREATION_CHANCE = 0.2  # as many are voided as are made, or the table would not keep its size
FIRST_CARD = 4_000_000_000_000_000


def sell(number: int, moment: Moment) -> InvoiceRow:
    """Returns a new invoice of a random store for a random customer."""
    random, basis, now_us = moment
    items = random.sample(range(1, basis.items + 1), 1 + random.randrange(min(MOST_LINES, basis.items)))
    lines = tuple(_line(item, random) for item in items)
    return InvoiceRow(
        number,
        store_id(1 + random.randrange(STORES)),
        _card(1 + random.randrange(basis.customers)),
        CustomerType.PRIME if random.random() < PRIME_CHANCE else CustomerType.NON_PRIME,
        _address(random) if random.random() < HOME_DELIVERY_CHANCE else None,
        lines,
        _total(lines),
        CURRENCY,
        now_us,
    )


def go_on(row: InvoiceRow, moment: Moment) -> InvoiceRow | None:
    """Returns the invoice after one correction, or absent when it is voided."""
    return take_step(row, STEPS, moment)


def _correct_quantity(row: InvoiceRow, moment: Moment) -> InvoiceRow:
    index = moment.random.randrange(len(row.lines))
    line = row.lines[index]
    corrected = line._replace(item_quantity=another_number(HIGHEST_QUANTITY, line.item_quantity, moment.random))
    lines = (*row.lines[:index], corrected, *row.lines[index + 1 :])
    return row._replace(lines=lines, total_amount_cents=_total(lines))


def _correct_customer_type(row: InvoiceRow, moment: Moment) -> InvoiceRow:
    return row._replace(customer_type=another(tuple(CustomerType), row.customer_type, moment.random))


def _correct_card(row: InvoiceRow, moment: Moment) -> InvoiceRow:
    present = int(row.customer_card_no) - FIRST_CARD
    return row._replace(customer_card_no=_card(another_number(moment.basis.customers, present, moment.random)))


def _card(number: int) -> str:
    return str(FIRST_CARD + number)


def _line(number: int, random: Random) -> Line:
    price_cents = 250 + number * 7919 % 19_750
    return Line(f"item-{number:04d}", f"Article {number}", 1 + random.randrange(HIGHEST_QUANTITY), price_cents)


def _total(lines: tuple[Line, ...]) -> int:
    return sum(line.item_quantity * line.item_price_cents for line in lines)


def _address(random: Random) -> Address:
    street = f"{1 + random.randrange(200)} Station Road"
    return Address(street, random.choice(CITIES), f"{random.randrange(10**6):06d}", f"9{random.randrange(10**9):09d}")


STEPS = (Step(40, _correct_quantity), Step(15, _correct_customer_type), Step(20, _correct_card), Step(25, end))
INVOICE_LIFE = Life("invoices", sell, go_on, STEADY_CREATION_CHANCE)
