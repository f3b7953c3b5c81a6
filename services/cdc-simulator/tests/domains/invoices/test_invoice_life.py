"""The life of an invoice."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.invoices.invoice_life import MOST_LINES, go_on, sell
from cdc_simulator.domains.invoices.rows import InvoiceRow
from cdc_simulator.domains.invoices.store_life import STORES

NOW_US = 1_724_848_496_123_456


def steps(basis: Basis) -> list[tuple[InvoiceRow, InvoiceRow | None]]:
    moments = [Moment(Random(seed), basis, NOW_US) for seed in range(400)]
    return [(row, go_on(row, moment)) for moment in moments for row in [sell(42, moment)]]


def test_its_total_is_the_sum_of_its_lines(basis: Basis) -> None:
    for before, after in steps(basis):
        for row in (before, after or before):
            assert 1 <= len(row.lines) <= MOST_LINES
            assert len({line.item_code for line in row.lines}) == len(row.lines)
            assert row.total_amount_cents == sum(line.item_quantity * line.item_price_cents for line in row.lines)


def test_it_is_corrected_or_voided(basis: Basis) -> None:
    changed = {None if after is None else changed_fields(before, after) for before, after in steps(basis)}

    assert changed == {None, ("lines", "total_amount_cents"), ("customer_type",), ("customer_card_no",)}


def changed_fields(before: InvoiceRow, after: InvoiceRow) -> tuple[str, ...]:
    return tuple(field for field in before._fields if getattr(before, field) != getattr(after, field))


def test_all_stores_sell_to_take_away_and_to_send(basis: Basis) -> None:
    rows = [before for before, _ in steps(basis)]

    assert {(row.store_id, row.delivery_address is None) for row in rows} == {
        (f"store-{number:02d}", taken) for number in range(1, STORES + 1) for taken in (True, False)
    }


def test_cards_have_sixteen_digits(basis: Basis) -> None:
    assert {len(row.customer_card_no) for pair in steps(basis) for row in pair if row is not None} == {16}
