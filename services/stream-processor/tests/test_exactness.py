"""Random histories through the real flow, with duplicates, disorder and crashes, against a plain model."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from random import Random

import pytest
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from statecast.change.v1.change_pb2 import OPERATION_SNAPSHOT
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.changes import INVOICE_ROWS, change, order
from testkit.stream_processor.invoice_windows import (
    EACH_QUARTER,
    HOURLY,
    QUARTER,
    SIZE,
    invoice_history,
    sales_by_window,
)
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.model import by_item, by_order, read_fenced
from testkit.topics import Record

Playing = Callable[[Pipeline, Sequence[Message], Random], list[Record]]
Chaining = Callable[[Pipeline, Sequence[Record], Random], list[Record]]
BATCHES = 3
NESTED_SUM = {
    "source": {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"},
    "keep": {"aggregate": {"unit_price_cents": "sum(element.quantity * element.unit_price_cents)"}},
    "sink": {"topic": "items", "message": "statecast.orders.v1.OrderItem"},
}

TABLE = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order", "format": "table"}
SOME = r"^order-[0-5]$"
"""Keys of some of the orders."""

pytestmark = pytest.mark.timeout(600)


def history(chance: Random) -> list[OrderChange]:
    """Changes of a few rows in two epochs: moves between groups and sorts, deletes, re-creations and snapshots."""
    rows: dict[str, Order] = {}
    changes = []
    for step in range(120):
        epoch, sequence = (1, step + 1) if step < 80 else (2, step - 79)
        order_id = f"order-{chance.randrange(8)}"
        before = rows.pop(order_id, None)
        if before is not None and chance.random() < 0.1:
            rows[order_id] = before
            order_change = change(None, before, sequence, epoch)
            order_change.operation = OPERATION_SNAPSHOT
        else:
            if before is None or chance.random() > 0.2:
                items = [f"item-{chance.randrange(4)}" for _ in range(chance.randint(0, 3))]
                rows[order_id] = order(order_id, f"customer-{chance.randrange(3)}", items, second=chance.randrange(5))
            order_change = change(before, rows.get(order_id), sequence, epoch)
        changes.append(order_change)
    return changes


def sent(changes: Sequence[OrderChange], chance: Random) -> list[OrderChange]:
    """Returns the changes as read from two partitions, with no order between the two, and some of them twice."""
    repeated = [*changes, *chance.sample(changes, 20)]
    halves = [[each for each in repeated if chance.random() < 0.5]]
    halves.append([each for each in repeated if each not in halves[0]])
    mixed = []
    while any(halves):
        mixed.append(chance.choice([half for half in halves if half]).pop(0))
    return mixed


def newest(changes: Sequence[OrderChange]) -> list[Order]:
    """Returns the rows that exist at the end."""
    ordered = sorted(changes, key=lambda each: (each.source.epoch, each.source.log_sequence_number))
    last = {(each.after if each.HasField("after") else each.before).order_id: each for each in ordered}
    return [each.after for each in last.values() if each.HasField("after")]


@pytest.fixture
def play(batches_of: BatchesOf) -> Playing:
    """Plays changes through the pipeline with a crash in one of its batches; returns the records that it writes."""

    def play(pipeline: Pipeline, changes: Sequence[Message], chance: Random) -> list[Record]:
        batches = batches_of(pipeline)
        for piece in pieces([each.SerializeToString() for each in changes], BATCHES):
            batches.add(piece)
        batches.run(crash_at=chance.randrange(BATCHES))
        batches.run()
        return batches.written

    return play


@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_latest_ends_with_the_newest_rows(shipped: PipelineOf, play: Playing, chance: Random) -> None:
    changes = history(chance)
    records = play(shipped("orders-by-key"), sent(changes, chance), chance)

    rows = {key: Order.FromString(state.payload) for key, state in read_fenced(records).items()}
    assert rows == {key: row for row in newest(changes) for key in by_order(row)}


@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_members_end_with_the_newest_rows_under_all_their_keys(
    shipped: PipelineOf, play: Playing, chance: Random
) -> None:
    changes = history(chance)
    records = play(shipped("orders-by-item"), sent(changes, chance), chance)

    rows = {key: Order.FromString(state.payload) for key, state in read_fenced(records).items()}
    assert rows == {key: row for row in newest(changes) for key in by_item(row)}


@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_sums_end_as_those_of_the_newest_rows(shipped: PipelineOf, play: Playing, chance: Random) -> None:
    changes = history(chance)
    records = play(shipped("orders-by-item", **NESTED_SUM), sent(changes, chance), chance)

    assert read_sums(records) == item_sums(newest(changes))


def item_sums(rows: Iterable[Order]) -> dict[str, OrderItem]:
    """Computes the sums that NESTED_SUM keeps of the rows."""
    totals: dict[str, int] = defaultdict(int)
    for item in (item for row in rows for item in row.items):
        totals[item.item_id] += item.quantity * item.unit_price_cents
    return {key: OrderItem(item_id=key, unit_price_cents=total) for key, total in totals.items()}


def read_sums(records: Iterable[Record]) -> dict[str, OrderItem]:
    """Reads the sums of NESTED_SUM as a reader with the fence."""
    return {key: OrderItem.FromString(state.payload) for key, state in read_fenced(records).items()}


@pytest.fixture
def follow(batches_of: BatchesOf) -> Chaining:
    """Plays the records of a table through the pipeline, as `play` does."""

    def follow(pipeline: Pipeline, records: Sequence[Record], chance: Random) -> list[Record]:
        batches = batches_of(pipeline)
        for piece in pieces(records, BATCHES):
            batches.add_records(piece)
        batches.run(crash_at=chance.randrange(BATCHES))
        batches.run()
        return batches.written

    return follow


@settings(few_but_rich, max_examples=1)
@given(chance=st.randoms(use_true_random=False))
def test_a_chain_ends_with_the_newest_rows(
    shipped: PipelineOf, play: Playing, follow: Chaining, chance: Random
) -> None:
    changes = history(chance)
    table = play(shipped("orders-by-key"), sent(changes, chance), chance)
    by_two = {"group_by": ["customer_id", "currency"], "keep": {"members": {"key": "order_id", "sort": "total_cents"}}}

    members = follow(shipped("orders-by-customer", source=TABLE, **by_two), table, chance)
    sums = follow(shipped("orders-by-item", **{**NESTED_SUM, "source": TABLE, "where_key": SOME}), table, chance)

    rows = newest(changes)
    assert {key: Order.FromString(state.payload) for key, state in read_fenced(members).items()} == {
        f"{row.customer_id}:EUR\0{row.total_cents:019}\0{row.order_id}": row for row in rows
    }
    assert read_sums(sums) == item_sums(row for row in rows if row.order_id < "order-6")


@pytest.mark.parametrize("values", [pytest.param("protobuf", marks=pytest.mark.long), "json"])
def test_a_table_by_offset_ends_with_the_newest_rows(shipped: PipelineOf, follow: Chaining, values: str) -> None:
    chance, source = Random(values), {**TABLE, "values": values}
    changes = history(chance)
    records = [Record(0, 0, key.encode(), row and encoded(row, values), {}) for key, row in map(row_of, changes)]

    latest = follow(shipped("orders-by-key", source=source, where="size(items) > 0"), records, chance)
    sums = follow(shipped("orders-by-item", **{**NESTED_SUM, "source": source}), records, chance)

    last = [row for row in dict(map(row_of, changes)).values() if row is not None]
    assert {key: Order.FromString(state.payload) for key, state in read_fenced(latest).items()} == {
        row.order_id: row for row in last if row.items
    }
    assert read_sums(sums) == item_sums(last)


def row_of(each: OrderChange) -> tuple[str, Order | None]:
    """Returns the record of a change on a compacted topic of rows: the key, and the row."""
    return (each.after.order_id, each.after) if each.HasField("after") else (each.before.order_id, None)


def encoded(row: Order, values: str) -> bytes:
    if values == "json":
        return MessageToJson(row, preserving_proto_field_name=True).encode()
    return row.SerializeToString()


TUMBLING = pytest.param(HOURLY, SIZE, id="tumbling", marks=pytest.mark.long)
HOPPING = pytest.param(EACH_QUARTER, QUARTER, id="hopping")


@pytest.mark.parametrize(("window", "hop"), [TUMBLING, HOPPING])
@few_but_rich
@given(chance=st.randoms(use_true_random=False))
def test_windows_end_with_what_was_committed_before_they_closed(
    shipped: PipelineOf, play: Playing, window: dict[str, str], hop: timedelta, chance: Random
) -> None:
    changes = invoice_history(chance)
    # The order of each row's changes decides which of them find a window open, so it is kept.
    repeated = sorted([*range(len(changes)), *chance.sample(range(len(changes)), 20)])
    pipeline = shipped("hourly-sales-by-store", source=INVOICE_ROWS, window=window)
    records = play(pipeline, [changes[number] for number in repeated], chance)

    windows = {key: HourlySales.FromString(state.payload) for key, state in read_fenced(records).items()}
    wanted = sales_by_window(changes, hop)
    assert {key: (sales.invoices, sales.amount_cents) for key, sales in windows.items()} == wanted
