"""The legal steps in the life of an order; pure, and random only by the generator that is passed in."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import NamedTuple

from cdc_simulator.order_row import Item, OrderRow, Shop, Status

MOST_LINES = 6
HIGHEST_QUANTITY = 5
CURRENCY = "EUR"
US = 1_000_000


class Moment(NamedTuple):
    """What a step may depend on beside the row: chance, the shop, and the time in microseconds since 1970 UTC."""

    random: Random
    shop: Shop
    now_us: int


Step = Callable[[OrderRow, Moment], OrderRow]
Lines = tuple[Item, ...]


def place(number: int, moment: Moment) -> OrderRow:
    """Returns a new order of a random customer, with one to three lines."""
    random, shop, now_us = moment
    numbers = random.sample(range(1, shop.items + 1), 1 + random.randrange(min(3, shop.items)))
    items = tuple(_line(item, random) for item in numbers)
    customer = f"customer-{1 + random.randrange(shop.customers):04d}"
    return OrderRow(number, customer, Status.PLACED, items, _total(items), CURRENCY, now_us, now_us, "", "")


def advance(row: OrderRow, moment: Moment) -> OrderRow:
    """Returns the row after one legal step, which changes more than the time. The row must not be finished."""
    steps, weights = STEPS[row.status]
    (step,) = moment.random.choices(steps, cum_weights=weights)
    return step(row, moment)


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
    if len(row.items) < min(MOST_LINES, moment.shop.items):
        changes.append(_add_line)
    if len(row.items) > 1:
        changes.append(_remove_line)
    items = moment.random.choice(changes)(row.items, moment)
    return row._replace(items=items, total_cents=_total(items), updated_at_us=moment.now_us)


def _change_quantity(items: Lines, moment: Moment) -> Lines:
    index = moment.random.randrange(len(items))
    item = items[index]
    # 1 to 4 further round the circle of quantities is never the quantity that it was.
    quantity = 1 + (item.quantity + moment.random.randrange(HIGHEST_QUANTITY - 1)) % HIGHEST_QUANTITY
    return (*items[:index], item._replace(quantity=quantity), *items[index + 1 :])


def _add_line(items: Lines, moment: Moment) -> Lines:
    present = {item.item_id for item in items}
    number = 1 + moment.random.randrange(moment.shop.items)
    while _item_id(number) in present:
        number = 1 + number % moment.shop.items
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


STEPS: dict[Status, tuple[Sequence[Step], Sequence[int]]] = {
    # The steps that each status allows, with cumulative weights out of 100.
    Status.PLACED: ((_pay, _change_items, _cancel), (55, 94, 100)),
    Status.PAID: ((_pack, _change_items, _move_delivery, _cancel), (60, 80, 95, 100)),
    Status.PACKED: ((_ship, _move_delivery, _cancel), (75, 95, 100)),
    Status.SHIPPED: ((_deliver, _move_delivery), (70, 100)),
}
