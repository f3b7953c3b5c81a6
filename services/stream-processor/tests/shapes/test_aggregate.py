"""From changes to the sums of groups: contributions, differences and the groups' messages together."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from google.protobuf.message import Message
from pyspark.sql import Row

from statecast.change.v1.change_pb2 import OPERATION_CREATE
from statecast.orders.v1.order_pb2 import ORDER_STATUS_PLACED, Order, OrderItem
from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.sales.v1.invoice_pb2 import Invoice, InvoiceChange
from statecast.state.v1.state_pb2 import StateRecord
from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.shapes.aggregate import AggregatePipeline
from testkit.stream_processor.changes import INVOICE_ROWS, POSITION_CHANGES, START, change, invoice_change, order
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.one_batch import OneBatch

EPOCH = 77
BY_ITEM = {
    "source": {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"},
    "sink": {"topic": "items", "message": "statecast.orders.v1.OrderItem"},
}

Totals = Callable[..., dict[str, StateRecord | None]]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def totals(batch: OneBatch) -> Totals:
    """The records on the topic after the changes, by key; None for a tombstone."""

    def run(pipeline: Pipeline, *changes: Message) -> dict[str, StateRecord | None]:
        return {bytes(line.key).decode(): _record(line) for line in batch.written(pipeline, *changes, epoch=EPOCH)}

    return run


def _record(line: Row) -> StateRecord | None:
    return None if line.value is None else StateRecord.FromString(bytes(line.value))


def by_item(shipped: PipelineOf, **numbers: str) -> Pipeline:
    return shipped("orders-by-item", keep={"aggregate": numbers}, **BY_ITEM)


def held(client: str, amount: int) -> OpenPosition:
    return OpenPosition(position_id="p", client=client, amount=amount, exchange="NASDAQ")


def moved(before: OpenPosition | None, after: OpenPosition | None, sequence: int) -> OpenPositionChange:
    order_change = change(before and order(), after and order(), sequence)
    return OpenPositionChange(operation=order_change.operation, source=order_change.source, before=before, after=after)


def test_rows_add_up_and_a_group_without_rows_is_deleted(shipped: PipelineOf, totals: Totals) -> None:
    one, other = held("a", 5), held("b", 7)
    second = OpenPosition(position_id="q", client="b", amount=2**62, exchange="NASDAQ")

    state_records = totals(
        shipped("us-share-holders", source=POSITION_CHANGES),
        moved(None, one, 1),
        moved(None, second, 2),
        moved(one, other, 3),
        moved(one, other, 3),
    )

    assert state_records["a"] is None
    assert state_records["b"] is not None
    assert ShareHolder.FromString(state_records["b"].payload) == ShareHolder(
        client="b", positions=2, shares=2**62 + 7, position_ids=["p", "q"]
    )
    assert (state_records["b"].epoch, state_records["b"].source.log_sequence_number) == (EPOCH, 3)


def test_a_group_with_a_sum_beyond_its_field_is_withheld_and_the_others_are_not(
    shipped: PipelineOf, totals: Totals
) -> None:
    second = OpenPosition(position_id="q", client="a", amount=2**62, exchange="NASDAQ")
    other = OpenPosition(position_id="r", client="b", amount=7, exchange="NASDAQ")
    pipeline = shipped("us-share-holders", source=POSITION_CHANGES)
    rows = totals(pipeline, moved(None, held("a", 2**62), 1), moved(None, second, 2), moved(None, other, 3))

    assert rows["a"] is None
    assert rows["b"] is not None
    assert ShareHolder.FromString(rows["b"].payload).shares == 7


def test_a_group_that_was_withheld_is_written_again_once_its_sum_fits(
    shipped: PipelineOf, batches_of: BatchesOf
) -> None:
    second = OpenPosition(position_id="q", client="a", amount=2**62, exchange="NASDAQ")
    played = batches_of(shipped("us-share-holders", source=POSITION_CHANGES))
    for each in (moved(None, held("a", 2**62), 1), moved(None, second, 2), moved(second, None, 3)):
        played.add([each])
    played.run()
    rows = [
        each.value and ShareHolder.FromString(StateRecord.FromString(each.value).payload) for each in played.written
    ]

    assert [each and each.shares for each in rows] == [2**62, None, 2**62]


def test_a_group_with_an_extreme_beyond_its_field_is_withheld(shipped: PipelineOf, totals: Totals) -> None:
    large, small = order("a", items=["large"]), order("b", items=["small"])
    large.items[0].unit_price_cents, small.items[0].unit_price_cents = 2**32 + 7, 2**31 - 1
    numbers = {"quantity": "max(element.unit_price_cents)"}
    pipeline = shipped("orders-by-item", keep={"aggregate": numbers}, insert_only=True, **BY_ITEM)

    rows = totals(pipeline, change(None, large, 1), change(None, small, 2))

    assert rows["large"] is None
    assert rows["small"] is not None
    assert OrderItem.FromString(rows["small"].payload).quantity == 2**31 - 1


def test_a_row_counts_of_which_a_number_cannot_be_computed(shipped: PipelineOf, totals: Totals) -> None:
    numbers = {"positions": "count(*)", "shares": "sum(length(repeat(repeat(client, 9000), 9000)))"}
    pipeline = shipped("us-share-holders", source=POSITION_CHANGES, keep={"aggregate": numbers})

    state_records = totals(pipeline, moved(None, held("a", 5), 1))

    assert state_records["a"] is not None
    assert ShareHolder.FromString(state_records["a"].payload) == ShareHolder(client="a", positions=1)


def test_every_element_of_a_repeated_group_counts(shipped: PipelineOf, totals: Totals) -> None:
    first, second = order("order-1", items=["x", "x", "y"]), order("order-2", items=["x"])
    first.items[1].quantity = 3
    pipeline = by_item(shipped, unit_price_cents="sum(element.quantity * size(items))")

    state_records = totals(pipeline, change(None, first, 1), change(None, second, 2))

    items = {key: OrderItem.FromString(record.payload) for key, record in state_records.items() if record}
    assert items == {
        "x": OrderItem(item_id="x", unit_price_cents=4 * 3 + 1),
        "y": OrderItem(item_id="y", unit_price_cents=3),
    }


def test_a_group_of_several_paths_stands_in_a_field_each(shipped: PipelineOf, totals: Totals) -> None:
    source = {**BY_ITEM["source"], "key": "order_id"}
    sink = {"topic": "t", "message": "statecast.orders.v1.Order"}
    keep = {"aggregate": {"total_cents": "count(*)"}}
    pipeline = shipped("orders-by-item", source=source, sink=sink, group_by=["customer_id", "status"], keep=keep)
    moved_row = order("order-2", customer="a\\b:c")

    state_records = totals(pipeline, change(None, order(), 1), change(order("order-2"), moved_row, 2))

    groups = {key: Order.FromString(record.payload) for key, record in state_records.items() if record}
    assert groups == {
        "customer-1:ORDER_STATUS_PLACED": Order(customer_id="customer-1", status=ORDER_STATUS_PLACED, total_cents=1),
        "a\\\\b\\:c:ORDER_STATUS_PLACED": Order(customer_id="a\\b:c", status=ORDER_STATUS_PLACED, total_cents=1),
    }


def test_a_set_beyond_its_bound_has_its_first_values_and_says_so(shipped: PipelineOf, totals: Totals) -> None:
    keep = {"aggregate": {"positions": "count(*)", "position_ids": "collect_set(ticker, 2)"}}
    pipeline = shipped("us-share-holders", source=POSITION_CHANGES, keep=keep)
    tickers = ("c", "b", "b", "a", "d", "e", "f")
    rows = [
        OpenPosition(position_id=f"p-{number}", client="x", ticker=ticker, exchange="NASDAQ")
        for number, ticker in enumerate(tickers)
    ]
    all_come = [moved(None, row, number) for number, row in enumerate(rows, 1)]
    most_go = [moved(row, None, number) for number, row in enumerate(rows, 8) if row.ticker != "b"]

    states = [totals(pipeline, *all_come)["x"], totals(pipeline, *all_come, *most_go)["x"]]

    holders = [ShareHolder.FromString(state.payload) for state in states if state]
    assert [(each.positions, [*each.position_ids], each.position_ids_truncated) for each in holders] == [
        (7, ["a", "b"], True),
        (2, ["b"], False),
    ]


def test_extremes_are_those_of_the_rows(shipped: PipelineOf, totals: Totals) -> None:
    pipeline = shipped(
        "orders-by-item",
        **BY_ITEM,
        insert_only=True,
        keep={"aggregate": {"quantity": "max(element.quantity)", "unit_price_cents": "min(element.quantity)"}},
    )
    rows = [order(f"order-{quantity}") for quantity in (1, 5, 3)]
    for row, quantity in zip(rows, (1, 5, 3), strict=True):
        row.items[0].quantity = quantity

    state_records = totals(pipeline, *[change(None, row, sequence) for sequence, row in enumerate(rows, 1)])

    assert state_records["item-1"] is not None
    assert OrderItem.FromString(state_records["item-1"].payload) == OrderItem(
        item_id="item-1", quantity=5, unit_price_cents=1
    )


def test_a_change_of_an_insert_only_row_is_a_problem(shipped: PipelineOf, batch: OneBatch) -> None:
    pipeline = shipped("us-share-holders", source=POSITION_CHANGES, insert_only=True)

    assert batch.problems(pipeline, moved(None, held("a", 1), 1), moved(held("a", 1), held("a", 2), 2)) == [
        None,
        "insert_only is true, but operation is OPERATION_UPDATE",
    ]


def test_a_sum_that_spark_would_not_form_exactly_is_refused(shipped: PipelineOf, totals: Totals) -> None:
    pipeline = shipped("us-share-holders", source=POSITION_CHANGES)
    assert isinstance(pipeline, AggregatePipeline)
    halves = tuple(replace(each, argument="amount / 2") for each in pipeline.aggregates[1:])
    inexact = replace(pipeline, aggregates=halves)

    with pytest.raises(PipelineFileError, match=r"us-share-holders\.yaml: keep\.aggregate\.shares: .* not exact"):
        totals(inexact, moved(None, held("a", 1), 1))


def sold(invoice: str, hours: float, committed: float, cents: int = 100) -> InvoiceChange:
    """Returns an invoice that was created, and committed, this many hours after START."""
    row = Invoice(invoice_number=invoice, store_id="s", total_amount_cents=cents)
    row.created_at.FromDatetime(START + timedelta(hours=hours))
    source = change(None, order(), 1).source
    source.commit_time.FromDatetime(START + timedelta(hours=committed))
    return InvoiceChange(operation=OPERATION_CREATE, source=source, after=row)


def test_a_window_takes_what_was_committed_before_it_closed(
    shipped: PipelineOf, totals: Totals, batch: OneBatch
) -> None:
    window = {"time": "created_at", "size": "1h", "lateness": "30m"}
    pipeline = shipped("hourly-sales-by-store", source=INVOICE_ROWS, window=window)
    changes = [sold("a", 0, 0), sold("b", 0.9, 1.5, cents=201), sold("c", 1, 1), sold("d", 0.5, 1.51)]

    state_records = totals(pipeline, *changes)

    first = state_records["s\0" + "2024-08-28T12:00:00.000000Z\0" + "2024-08-28T13:00:00.000000Z"]
    assert len(state_records) == 2
    assert first is not None
    sales = HourlySales.FromString(first.payload)
    assert (sales.store_id, sales.invoices, sales.amount_cents, sales.average_cents) == ("s", 2, 301, 150.5)
    assert sales.window_start.ToDatetime(START.tzinfo) == START
    assert sales.window_end.ToDatetime(START.tzinfo) == START + timedelta(hours=1)
    assert batch.problems(pipeline, *changes) == [
        None,
        None,
        None,
        "too late: the window of after.created_at ended at 2024-08-28T13:00:00.000000Z",
    ]


def test_a_row_leaves_its_window_with_a_new_sequence_though_its_last_change_came_too_late(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    pipeline = shipped(
        "hourly-sales-by-store", source=INVOICE_ROWS, window={"time": "created_at", "size": "1h", "lateness": "30m"}
    )
    rows = [Invoice(invoice_number="a", store_id="s") for _ in range(3)]
    for row, hour in zip(rows, (1, 0, 2), strict=True):
        row.created_at.FromDatetime(START + timedelta(hours=hour))
    first, late, last = rows
    steps = [(None, first, 1.1), (first, late, 2.05), (late, None, 2.06), (None, last, 2.07)]
    changes = []
    for sequence, (before, after, committed) in enumerate(steps, 1):
        envelope = invoice_change(before, after, sequence)
        envelope.source.commit_time.FromDatetime(START + timedelta(hours=committed))
        changes.append(envelope)

    left, entered = sorted(batch.written(pipeline, *changes, epoch=EPOCH), key=lambda line: bytes(line.key))

    assert left.value is None
    assert StateRecord.FromString(bytes(left.headers[0].value)).sequence == 2
    assert StateRecord.FromString(bytes(entered.value)).sequence == 1
