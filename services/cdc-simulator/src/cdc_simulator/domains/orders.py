"""The shop: orders, from placed to delivered or cancelled."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import NamedTuple

from cdc_simulator.domain import SECOND_US, Domain, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another_number
from cdc_simulator.source_table import SourceTable
from statecast.orders.v1.order_pb2 import OrderChange

MAX_LINES = 6
MAX_QUANTITY = 5
CURRENCY = "EUR"
LAST_DAY = date(9999, 12, 1)


class Status(StrEnum):
    """The status of an order; the values stand in the table."""

    PLACED = "placed"
    PAID = "paid"
    PACKED = "packed"
    SHIPPED = "shipped"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


class Item(NamedTuple):
    item_id: str
    quantity: int
    unit_price_cents: int


Items = tuple[Item, ...]


class OrderRow(NamedTuple):
    """One row. Times are microseconds since 1970 UTC; texts are empty while unknown; `number` is the primary key."""

    number: int
    customer_id: str
    status: Status
    items: Items
    total_cents: int
    currency: str
    placed_at_us: int
    updated_at_us: int
    estimated_delivery: str
    tracking_number: str

    @property
    def order_id(self) -> str:
        return f"order-{self.number:06d}"


ORDERS = SourceTable("orders", OrderRow, OrderChange, virtual={"order_id": "printf('order-%06d', number)"})


def create_order(number: int, context: StepContext) -> OrderRow:
    random, parameters, now_us = context
    numbers = random.sample(range(1, parameters.items + 1), 1 + random.randrange(min(3, parameters.items)))
    items = tuple(_item(item, random) for item in numbers)
    customer = f"customer-{1 + random.randrange(parameters.customers):04d}"
    return OrderRow(number, customer, Status.PLACED, items, _total(items), CURRENCY, now_us, now_us, "", "")


def _set_status(status: Status) -> Callable[[OrderRow, StepContext], OrderRow]:
    return lambda row, context: row._replace(status=status, updated_at_us=context.now_us)


def _pay(row: OrderRow, context: StepContext) -> OrderRow:
    day = _today(context) + timedelta(days=3 + context.random.randrange(7))
    return row._replace(status=Status.PAID, estimated_delivery=day.isoformat(), updated_at_us=context.now_us)


def _ship(row: OrderRow, context: StepContext) -> OrderRow:
    tracking_number = f"SC{context.random.randrange(10**10):010d}"
    return row._replace(status=Status.SHIPPED, tracking_number=tracking_number, updated_at_us=context.now_us)


def _move_delivery(row: OrderRow, context: StepContext) -> OrderRow:
    try:
        day = date.fromisoformat(row.estimated_delivery)
    except ValueError:  # others have written something else
        day = _today(context)
    day = min(day, LAST_DAY) + timedelta(days=context.random.choice((-1, 1, 2, 3)))
    return row._replace(estimated_delivery=day.isoformat(), updated_at_us=context.now_us)


def _today(context: StepContext) -> date:
    return datetime.fromtimestamp(context.now_us // SECOND_US, UTC).date()


def _change_items(row: OrderRow, context: StepContext) -> OrderRow:
    changes = [_change_quantity] if row.items else []
    if len(row.items) < min(MAX_LINES, context.parameters.items):
        changes.append(_add_item)
    if len(row.items) > 1:
        changes.append(_remove_item)
    items = context.random.choice(changes)(row.items, context)
    return row._replace(items=items, total_cents=_total(items), updated_at_us=context.now_us)


def _change_quantity(items: Items, context: StepContext) -> Items:
    index = context.random.randrange(len(items))
    item = items[index]
    quantity = another_number(MAX_QUANTITY, item.quantity, context.random)
    return (*items[:index], item._replace(quantity=quantity), *items[index + 1 :])


def _add_item(items: Items, context: StepContext) -> Items:
    present = {item.item_id for item in items}
    number = 1 + context.random.randrange(context.parameters.items)
    while _item_id(number) in present:
        number = 1 + number % context.parameters.items
    return (*items, _item(number, context.random))


def _remove_item(items: Items, context: StepContext) -> Items:
    index = context.random.randrange(len(items))
    return (*items[:index], *items[index + 1 :])


def _item(number: int, random: Random) -> Item:
    return Item(_item_id(number), 1 + random.randrange(MAX_QUANTITY), 199 + number * 7919 % 9800)


def _item_id(number: int) -> str:
    return f"item-{number:04d}"


def _total(items: Items) -> int:
    return sum(item.quantity * item.unit_price_cents for item in items)


_pack, _cancel = _set_status(Status.PACKED), _set_status(Status.CANCELLED)
STEPS = {
    Status.PLACED: (Step(55, _pay), Step(39, _change_items), Step(6, _cancel)),
    Status.PAID: (Step(60, _pack), Step(20, _change_items), Step(15, _move_delivery), Step(5, _cancel)),
    Status.PACKED: (Step(75, _ship), Step(20, _move_delivery), Step(5, _cancel)),
    Status.SHIPPED: (Step(70, _set_status(Status.DELIVERED)), Step(30, _move_delivery)),
}
ORDER_LIFE_CYCLE = RowLifeCycle("orders", create_order, STEPS, creation_share=0.125)

DOMAIN = Domain("orders", (ORDERS,), ORDER_LIFE_CYCLE.initial_rows, ORDER_LIFE_CYCLE.next_mutation)
