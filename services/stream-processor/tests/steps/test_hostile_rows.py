"""No row ends the query of its shape: values at the borders of their types, far beyond those of a key, and many."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import MicroBatches, PipelineOf
from testkit.stream_processor.model import read_fenced

pytestmark = pytest.mark.timeout(300)

MANY = 20_000
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Those of the years 1 and 9999, of which a Timestamp holds no others."""
SECONDS = [MIN_INT64, FIRST_SECOND - 1, FIRST_SECOND, LAST_SECOND, LAST_SECOND + 1, MAX_INT64]
TEXTS = ["", "\0", "a\0b", "x" * 1_000_000, "😀" * 1_024, "😀" * 1_025, ":" * 1_024, "\\" * 1_024]
SOLD: dict[str, Any] = {
    "source": {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"},
    "group_by": "items.item_id",
    "keep": {"aggregate": {"unit_price_cents": "sum(element.unit_price_cents)"}},
    "sink": {"topic": "sold", "message": "statecast.orders.v1.OrderItem"},
}
SHAPES: dict[str, dict[str, Any]] = {
    "latest": {},
    "members": {"group_by": "items.item_id", "keep": {"members": {"key": "order_id", "sort": "placed_at"}}},
    "aggregate": SOLD,
    "route": {
        "explode": "items",
        "select": {"item_id": "element.item_id"},
        "group_by": "customer_id",
        "keep": "route",
        "sink": {"topic": "lines", "message": "statecast.orders.v1.OrderItem"},
    },
}


def hostile_changes() -> Iterator[OrderChange]:
    for number in (MIN_INT64, MAX_INT64):
        row = order(f"amounts{number}")
        row.total_cents = row.items[0].unit_price_cents = number
        yield change(None, row, 2)
        yield change(None, order(f"position{number}"), number, number)
        yield change(order(f"position{number}"), order(f"position{number}", second=1), number, number)
        yield change(order(f"position{number}"), None, number)
    for seconds in SECONDS:
        row = order(f"times{seconds}")
        row.placed_at.seconds = row.updated_at.seconds = seconds
        yield change(None, row, 3)
        committed = change(None, order(f"committed{seconds}"), 4)
        committed.source.commit_time.seconds = seconds
        yield committed
    for text in TEXTS:
        yield change(None, order(text), 5)
        yield change(None, order("customer", customer=text), 6)
        yield change(None, order("item", items=[text, text]), 7)
        source = change(None, order("source"), 8)
        source.source.table = source.source.transaction_id = text
        yield source


@pytest.fixture
def play(shipped: PipelineOf, tmp_path: Path, spark: SparkSession, functions: Functions) -> Callable[..., MicroBatches]:
    """Plays a batch of changes through a shape, and then one of a sound row."""

    def play(shape: str, *changes: OrderChange) -> MicroBatches:
        played = MicroBatches(tmp_path / uuid4().hex, shipped("orders-by-key", **SHAPES[shape]), spark, functions)
        played.add(each.SerializeToString() for each in changes)
        played.add([change(None, order("sound", customer="sound", items=["sound"]), 100).SerializeToString()])
        played.run()
        return played

    return play


@pytest.mark.parametrize("shape", SHAPES)
def test_the_row_behind_hostile_ones_is_written(play: Callable[..., MicroBatches], shape: str) -> None:
    played = play(shape, *hostile_changes())

    assert b"sound" in played.written[-1].key
    assert played.outcomes["set_aside"] > 0


def test_a_row_in_thousands_of_groups_counts_in_each(play: Callable[..., MicroBatches]) -> None:
    before, after = many_items(0), many_items(1)
    played = play("aggregate", change(None, before, 1), change(before, after, 2))

    sold = {key: OrderItem.FromString(each.payload) for key, each in read_fenced(played.written).items()}
    assert {key: each.unit_price_cents for key, each in sold.items()} == {
        "sound": 100,
        **{f"item-{number}": 100 for number in range(1, MANY + 1)},
    }


def many_items(first: int) -> Order:
    return order("large", items=[f"item-{number}" for number in range(first, first + MANY)])
