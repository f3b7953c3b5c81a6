"""The legal steps in the life of an order; pure, and random only by the generator that is passed in."""

from datetime import UTC, date, datetime, timedelta
from random import Random

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, another_number, take_step_of_status
from cdc_simulator.domains.orders.row import Item, OrderRow, Status
from cdc_simulator.life import Life
from cdc_simulator.timestamps import US

MOST_LINES = 6
HIGHEST_QUANTITY = 5
CURRENCY = "EUR"
STEADY_CREATION_CHANCE = 0.125  # about eight changes make up the life of an order

Lines = tuple[Item, ...]


def place(number: int, moment: Moment) -> OrderRow:
    """Returns a new order of a random customer, with one to three lines."""
    random, basis, now_us = moment
    numbers = random.sample(range(1, basis.items + 1), 1 + random.randrange(min(3, basis.items)))
    items = tuple(_line(item, random) for item in numbers)
    customer = f"customer-{1 + random.randrange(basis.customers):04d}"
    return OrderRow(number, customer, Status.PLACED, items, _total(items), CURRENCY, now_us, now_us, "", "")


def go_on(row: OrderRow, moment: Moment) -> OrderRow | None:
    """Returns the order after one legal step; a finished one stays as it is until, half of the times, it is deleted."""
    return take_step_of_status(row, STEPS, moment)


def is_finished(row: OrderRow) -> bool:
    """Whether nothing but deletion can happen to the row any more."""
    return row.status not in STEPS


def _pay(row: OrderRow, moment: Moment) -> OrderRow:
    today = datetime.fromtimestamp(moment.now_us // US, UTC).date()
    day = today + timedelta(days=3 + moment.random.randrange(7))
    return row._replace(status=Status.PAID, estimated_delivery=day.isoformat(), updated_at_us=moment.now_us)


def _pack(row: OrderRow, moment: Moment) -> OrderRow:
    return row._replace(status=Status.PACKED, updated_at_us=moment.now_us)


def _ship(row: OrderRow, moment: Moment) -> OrderRow:
    tracking_number = f"SC{moment.random.randrange(10**10):010d}"
    return row._replace(status=Status.SHIPPED, tracking_number=tracking_number, updated_at_us=moment.now_us)


def _deliver(row: OrderRow, moment: Moment) -> OrderRow:
    return row._replace(status=Status.DELIVERED, updated_at_us=moment.now_us)


def _cancel(row: OrderRow, moment: Moment) -> OrderRow:
    return row._replace(status=Status.CANCELLED, updated_at_us=moment.now_us)


def _move_delivery(row: OrderRow, moment: Moment) -> OrderRow:
    day = date.fromisoformat(row.estimated_delivery) + timedelta(days=moment.random.choice((-1, 1, 2, 3)))
    return row._replace(estimated_delivery=day.isoformat(), updated_at_us=moment.now_us)


def _change_items(row: OrderRow, moment: Moment) -> OrderRow:
    changes = [_change_quantity]
    if len(row.items) < min(MOST_LINES, moment.basis.items):
        changes.append(_add_line)
    if len(row.items) > 1:
        changes.append(_remove_line)
    items = moment.random.choice(changes)(row.items, moment)
    return row._replace(items=items, total_cents=_total(items), updated_at_us=moment.now_us)


def _change_quantity(items: Lines, moment: Moment) -> Lines:
    index = moment.random.randrange(len(items))
    item = items[index]
    quantity = another_number(HIGHEST_QUANTITY, item.quantity, moment.random)
    return (*items[:index], item._replace(quantity=quantity), *items[index + 1 :])


def _add_line(items: Lines, moment: Moment) -> Lines:
    present = {item.item_id for item in items}
    number = 1 + moment.random.randrange(moment.basis.items)
    while _item_id(number) in present:
        number = 1 + number % moment.basis.items
    return (*items, _line(number, moment.random))


def _remove_line(items: Lines, moment: Moment) -> Lines:
    index = moment.random.randrange(len(items))
    return (*items[:index], *items[index + 1 :])


def _line(number: int, random: Random) -> Item:
    return Item(_item_id(number), 1 + random.randrange(HIGHEST_QUANTITY), _price_cents(number))


def _item_id(number: int) -> str:
    return f"item-{number:04d}"


def _price_cents(number: int) -> int:
    return 199 + number * 7919 % 9800


def _total(items: Lines) -> int:
    return sum(item.quantity * item.unit_price_cents for item in items)


STEPS = {
    Status.PLACED: (Step(55, _pay), Step(39, _change_items), Step(6, _cancel)),
    Status.PAID: (Step(60, _pack), Step(20, _change_items), Step(15, _move_delivery), Step(5, _cancel)),
    Status.PACKED: (Step(75, _ship), Step(20, _move_delivery), Step(5, _cancel)),
    Status.SHIPPED: (Step(70, _deliver), Step(30, _move_delivery)),
}
ORDER_LIFE = Life("orders", place, go_on, STEADY_CREATION_CHANCE)
