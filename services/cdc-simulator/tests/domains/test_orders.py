"""Orders: their rows, their life cycle and their messages."""

from collections.abc import Iterator
from random import Random

import pytest

from cdc_simulator.domain import DatabaseParameters, StepContext
from cdc_simulator.domains.orders import (
    DOMAIN,
    MAX_LINES,
    ORDER_LIFE_CYCLE,
    ORDERS,
    STEPS,
    OrderRow,
    Status,
    create_order,
)
from statecast.orders.v1.order_pb2 import Order, OrderItem, OrderStatus

NOW_US = 1_724_848_496_123_456
LEGAL = {
    Status.PLACED: {Status.PLACED, Status.PAID, Status.CANCELLED},
    Status.PAID: {Status.PAID, Status.PACKED, Status.CANCELLED},
    Status.PACKED: {Status.PACKED, Status.SHIPPED, Status.CANCELLED},
    Status.SHIPPED: {Status.SHIPPED, Status.DELIVERED},
}


def initial_rows(parameters: DatabaseParameters, now_us: int) -> Iterator[OrderRow]:
    return (insert.after for insert in DOMAIN.initial_rows(parameters, now_us))


def test_there_are_as_many_as_asked_numbered_from_one(parameters: DatabaseParameters) -> None:
    rows = list(initial_rows(parameters, NOW_US))

    assert [row.number for row in rows] == list(range(1, 51))
    assert rows[0].order_id == "order-000001"


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(parameters: DatabaseParameters) -> None:
    rows = list(initial_rows(parameters, NOW_US))

    assert list(initial_rows(parameters, NOW_US)) == rows
    assert list(initial_rows(parameters._replace(seed=8), NOW_US)) != rows


def test_they_lie_in_the_past_and_were_changed_after_they_were_placed(parameters: DatabaseParameters) -> None:
    for row in initial_rows(parameters, NOW_US):
        assert row.placed_at_us <= row.updated_at_us < NOW_US


def test_they_have_all_statuses(parameters: DatabaseParameters) -> None:
    assert {row.status for row in initial_rows(parameters._replace(rows=300), NOW_US)} == set(Status)


def steps_to_the_end(count: int, parameters: DatabaseParameters) -> list[tuple[OrderRow, OrderRow]]:
    """Returns the rows before and after each step of this many orders, from placed to finished."""
    steps = []
    for number in range(1, count + 1):
        random = Random(number)
        row = create_order(number, StepContext(random, parameters, 1_000_000))
        while not ORDER_LIFE_CYCLE.is_finished(row):
            after = ORDER_LIFE_CYCLE.advance(row, StepContext(random, parameters, row.updated_at_us + 1_000_000))
            assert after is not None
            steps.append((row, after))
            row = after
    return steps


def test_each_step_leads_to_a_legal_status(parameters: DatabaseParameters) -> None:
    transitions = {(before.status, after.status) for before, after in steps_to_the_end(400, parameters)}

    assert transitions == {(before, after) for before, allowed in LEGAL.items() for after in allowed}


def test_each_step_changes_more_than_the_time_and_never_the_identity(parameters: DatabaseParameters) -> None:
    for before, after in steps_to_the_end(200, parameters):
        assert after._replace(updated_at_us=before.updated_at_us) != before
        assert after.updated_at_us == before.updated_at_us + 1_000_000
        assert (after.number, after.customer_id, after.placed_at_us) == (
            before.number,
            before.customer_id,
            before.placed_at_us,
        )


def test_lines_are_legal_and_the_total_is_their_sum(parameters: DatabaseParameters) -> None:
    for _, row in steps_to_the_end(200, parameters):
        items = [item.item_id for item in row.items]

        assert 1 <= len(items) <= MAX_LINES
        assert len(set(items)) == len(items)
        assert all(1 <= item.quantity <= 5 for item in row.items)
        assert row.total_cents == sum(item.quantity * item.unit_price_cents for item in row.items)


def test_customers_change_lines_only_until_the_order_is_packed(parameters: DatabaseParameters) -> None:
    changed = {before.status for before, after in steps_to_the_end(300, parameters) if before.items != after.items}

    assert changed == {Status.PLACED, Status.PAID}


def test_customers_add_and_remove_lines_and_change_quantities(parameters: DatabaseParameters) -> None:
    pairs = [
        (before.items, after.items)
        for before, after in steps_to_the_end(300, parameters)
        if before.items != after.items
    ]

    assert {len(after) - len(before) for before, after in pairs} == {-1, 0, 1}


def test_there_is_a_tracking_number_once_the_order_is_shipped(parameters: DatabaseParameters) -> None:
    for _, row in steps_to_the_end(200, parameters):
        assert bool(row.tracking_number) == (row.status in {Status.SHIPPED, Status.DELIVERED})


def test_delivery_is_expected_once_the_order_is_paid_and_moves_now_and_then(parameters: DatabaseParameters) -> None:
    steps = steps_to_the_end(200, parameters)
    moved = [after for before, after in steps if "" != before.estimated_delivery != after.estimated_delivery]

    assert moved
    for before, after in steps:
        if after.status not in {Status.PLACED, Status.CANCELLED}:
            assert after.estimated_delivery > "1970-01-01"
        if after.status == Status.PLACED:
            assert before.estimated_delivery == after.estimated_delivery == ""


def test_a_shop_with_one_article_sells_it(parameters: DatabaseParameters) -> None:
    rows = [after for _, after in steps_to_the_end(50, parameters._replace(items=1, customers=1))]

    assert {item.item_id for row in rows for item in row.items} == {"item-0001"}
    assert {row.customer_id for row in rows} == {"customer-0001"}


@pytest.mark.parametrize("status", list(STEPS))
def test_the_weights_of_each_status_are_hundredths(status: Status) -> None:
    assert sum(step.weight for step in STEPS[status]) == 100


def test_a_finished_order_stays_as_it_is_until_it_is_deleted(parameters: DatabaseParameters, row: OrderRow) -> None:
    finished = row._replace(status=Status.CANCELLED)
    ways = {ORDER_LIFE_CYCLE.advance(finished, StepContext(Random(seed), parameters, 3_000_000)) for seed in range(20)}

    assert ways == {finished, None}


def message_of(row: OrderRow) -> Order:
    message = ORDERS.message(row)
    assert isinstance(message, Order)
    return message


def test_every_field_of_the_row_is_carried_over(row: OrderRow) -> None:
    message = message_of(row._replace(status=Status.SHIPPED, tracking_number="SC1"))

    assert message.order_id == "order-000042"
    assert message.customer_id == "customer-0003"
    assert message.status == OrderStatus.ORDER_STATUS_SHIPPED
    assert list(message.items) == [
        OrderItem(item_id="item-0001", quantity=2, unit_price_cents=150),
        OrderItem(item_id="item-0002", quantity=1, unit_price_cents=99),
    ]
    assert (message.total_cents, message.currency) == (399, "EUR")
    assert message.placed_at.ToMicroseconds() == 1_000_001
    assert message.updated_at.ToMicroseconds() == 2_000_002
    assert (message.estimated_delivery, message.tracking_number) == ("2024-08-28", "SC1")


def test_remembered_parts_are_not_shared_between_messages(row: OrderRow) -> None:
    first = message_of(row)
    first.placed_at.seconds = 5
    first.items[0].quantity = 5

    assert message_of(row).placed_at.seconds == 1
    assert message_of(row).items[0].quantity == 2


@pytest.mark.parametrize("name", list(OrderStatus.keys()))
def test_every_status_of_the_contract_is_known(name: str) -> None:
    assert (name.removeprefix("ORDER_STATUS_") in Status.__members__) == (name != "ORDER_STATUS_UNSPECIFIED")
