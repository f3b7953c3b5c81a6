"""The life of an order."""

from random import Random

import pytest

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.orders.life_cycle import MOST_LINES, STEPS, go_on, is_finished, place
from cdc_simulator.domains.orders.row import OrderRow, Status

LEGAL = {
    Status.PLACED: {Status.PLACED, Status.PAID, Status.CANCELLED},
    Status.PAID: {Status.PAID, Status.PACKED, Status.CANCELLED},
    Status.PACKED: {Status.PACKED, Status.SHIPPED, Status.CANCELLED},
    Status.SHIPPED: {Status.SHIPPED, Status.DELIVERED},
}


def lives(count: int, basis: Basis) -> list[tuple[OrderRow, OrderRow]]:
    """The steps, before and after, of so many orders from placed to finished."""
    steps = []
    for number in range(1, count + 1):
        random = Random(number)
        row = place(number, Moment(random, basis, 1_000_000))
        while not is_finished(row):
            after = go_on(row, Moment(random, basis, row.updated_at_us + 1_000_000))
            assert after is not None
            steps.append((row, after))
            row = after
    return steps


def test_each_step_leads_to_a_legal_status(basis: Basis) -> None:
    seen = {(before.status, after.status) for before, after in lives(400, basis)}

    assert seen == {(before, after) for before, allowed in LEGAL.items() for after in allowed}


def test_each_step_changes_more_than_the_time_and_never_the_identity(basis: Basis) -> None:
    for before, after in lives(200, basis):
        assert after._replace(updated_at_us=before.updated_at_us) != before
        assert after.updated_at_us == before.updated_at_us + 1_000_000
        assert (after.number, after.customer_id, after.placed_at_us) == (
            before.number,
            before.customer_id,
            before.placed_at_us,
        )


def test_lines_are_legal_and_the_total_is_their_sum(basis: Basis) -> None:
    for _, row in lives(200, basis):
        items = [item.item_id for item in row.items]

        assert 1 <= len(items) <= MOST_LINES
        assert len(set(items)) == len(items)
        assert all(1 <= item.quantity <= 5 for item in row.items)
        assert row.total_cents == sum(item.quantity * item.unit_price_cents for item in row.items)


def test_customers_change_lines_only_until_the_order_is_packed(basis: Basis) -> None:
    changed = {before.status for before, after in lives(300, basis) if before.items != after.items}

    assert changed == {Status.PLACED, Status.PAID}


def test_customers_add_and_remove_lines_and_change_quantities(basis: Basis) -> None:
    pairs = [(before.items, after.items) for before, after in lives(300, basis) if before.items != after.items]

    assert {len(after) - len(before) for before, after in pairs} == {-1, 0, 1}


def test_there_is_a_tracking_number_once_the_order_is_shipped(basis: Basis) -> None:
    for _, row in lives(200, basis):
        assert bool(row.tracking_number) == (row.status in {Status.SHIPPED, Status.DELIVERED})


def test_delivery_is_expected_once_the_order_is_paid_and_moves_now_and_then(basis: Basis) -> None:
    steps = lives(200, basis)
    moved = [after for before, after in steps if "" != before.estimated_delivery != after.estimated_delivery]

    assert moved
    for before, after in steps:
        if after.status not in {Status.PLACED, Status.CANCELLED}:
            assert after.estimated_delivery > "1970-01-01"
        if after.status == Status.PLACED:
            assert before.estimated_delivery == after.estimated_delivery == ""


def test_a_shop_with_one_article_sells_it(basis: Basis) -> None:
    rows = [after for _, after in lives(50, basis._replace(items=1, customers=1))]

    assert {item.item_id for row in rows for item in row.items} == {"item-0001"}
    assert {row.customer_id for row in rows} == {"customer-0001"}


@pytest.mark.parametrize("status", list(STEPS))
def test_the_weights_of_each_status_are_hundredths(status: Status) -> None:
    assert sum(step.weight for step in STEPS[status]) == 100


def test_a_finished_order_stays_as_it_is_until_it_is_deleted(basis: Basis, row: OrderRow) -> None:
    finished = row._replace(status=Status.CANCELLED)
    ways = {go_on(finished, Moment(Random(chance), basis, 3_000_000)) for chance in range(20)}

    assert ways == {finished, None}
