"""Every record that a pipeline reads ends in one way and is counted once, in each shape."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql.classic.dataframe import DataFrame

from statecast.change.v1.change_pb2 import OPERATION_SNAPSHOT
from statecast.orders.v1.order_pb2 import Order, OrderChange
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import BatchesOf, PipelineOf
from testkit.stream_processor.one_batch import OneBatch
from testkit.stream_processor.truncated_positions import POSITIONS, created, encoded, truncated
from testkit.topics import Record

pytestmark = pytest.mark.timeout(600)

Playing = Callable[..., Counter[str]]


@pytest.fixture
def play(batches_of: BatchesOf) -> Playing:
    """Plays micro-batches of changes, raw values or tombstones (None) through a pipeline; gives the outcomes."""

    def run(pipeline: Pipeline, *batches: Iterable[OrderChange | bytes | None]) -> Counter[str]:
        played = batches_of(pipeline)
        for batch in batches:
            values = [each.SerializeToString() if isinstance(each, OrderChange) else each for each in batch]
            played.add_records(Record(0, 0, b"key", value, {}) for value in values)
        played.run()
        return +played.outcomes

    return run


def timed(each: OrderChange, seconds: int) -> OrderChange:
    """Returns the change, committed so many seconds later than its place says."""
    each.source.commit_time.FromDatetime(each.source.commit_time.ToDatetime() + timedelta(seconds=seconds))
    return each


def dollars(order_id: str) -> Order:
    row = order(order_id)
    row.currency = "USD"
    return row


SHAPES: dict[str, dict[str, object]] = {
    "latest": {},
    "members": {"group_by": "customer_id", "keep": {"members": {"key": "order_id", "sort": "placed_at"}}},
    "aggregate": {
        "source": {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"},
        "group_by": "items.item_id",
        "keep": {"aggregate": {"unit_price_cents": "sum(element.quantity)"}},
        "sink": {"topic": "sold", "message": "statecast.orders.v1.OrderItem"},
    },
}


@pytest.mark.parametrize("shape", ["latest", pytest.param("members", marks=pytest.mark.long), "aggregate"])
def test_each_record_of_a_pipeline_with_state_ends_in_one_way(shipped: PipelineOf, play: Playing, shape: str) -> None:
    moved = change(order("order-20"), order("order-21"), 60)
    old = OrderChange(operation=OPERATION_SNAPSHOT, source=change(None, order(), 25).source, after=order("order-30"))

    outcomes = play(
        shipped("orders-by-key", where="currency = 'EUR'", **SHAPES[shape]),
        [change(None, order(f"order-{number}"), number) for number in (10, 20, 30, 40)],
        [b"\xff", None, change(None, dollars("usd"), 50), change(dollars("usd"), None, 51)],
        [change(None, order("order-10"), 10), moved, old],
        [timed(change(None, order("order-40"), 39), 3_000), change(order("order-40"), None, 70)],
        [change(order("order-40"), order("order-40"), 39)],
    )

    assert outcomes == {
        "applied": 6,  # four new rows, one with a key that changes, and a deletion
        "filtered": 2,
        "duplicate": 1,
        "superseded": 2,
        "superseded_newer": 1,
        "set_aside": 1,
        "passed_over": 1,
    }


@pytest.mark.parametrize("shape", ["latest", "members", "aggregate"])
def test_lines_are_counted_where_they_hold_no_row(
    shipped: PipelineOf, batch: OneBatch, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """Spark copies each line that it counts, with all that it has."""
    counted: list[list[str]] = []
    observe = DataFrame.observe

    def noting(lines: DataFrame, *arguments: Any) -> Any:
        counted.append(lines.columns)
        return observe(lines, *arguments)

    monkeypatch.setattr(DataFrame, "observe", noting)
    batch.written(shipped("orders-by-key", **SHAPES[shape]), change(None, order(), 1))

    assert len(counted) >= 2
    assert not {"change", "before", "after", "previous"} & {name for columns in counted for name in columns}


@pytest.mark.parametrize("shape", ["latest", "aggregate"])
def test_a_log_that_runs_backwards_is_found_within_a_batch_too(shipped: PipelineOf, play: Playing, shape: str) -> None:
    outcomes = play(
        shipped("orders-by-key", **SHAPES[shape]),
        [change(None, order("a"), 8_000_000), *[timed(change(None, order("a"), n), 9_000) for n in (5, 6, 7)]],
        [timed(change(None, order("a"), 8), 9_000)],
    )

    assert outcomes == {"applied": 1, "superseded_newer": 4}


def test_many_changes_of_a_row_that_come_together_count_each(shipped: PipelineOf, play: Playing) -> None:
    rows = [change(None, order("a"), number) for number in range(1, 100)]

    assert play(shipped("orders-by-key"), rows, rows) == {"applied": 99, "duplicate": 1, "superseded": 98}


def test_a_route_applies_what_it_passes_on_and_filters_the_rest(shipped: PipelineOf, play: Playing) -> None:
    route = {"keep": {"route": {"operations": ["create"]}}, "where": "currency = 'EUR'"}

    outcomes = play(
        shipped("orders-by-key", **route),
        [
            change(None, order(), 1),
            change(None, order(), 1),
            change(order(), order(), 2),
            change(None, dollars("b"), 3),
        ],
        [b"\xff", None, change(order(), None, 4)],
    )

    assert outcomes == {"applied": 2, "filtered": 3, "set_aside": 1, "passed_over": 1}


def test_a_message_that_is_too_large_is_set_aside(shipped: PipelineOf, play: Playing) -> None:
    sink = {"topic": "orders-by-key", "message": "statecast.orders.v1.Order"}
    pipeline = shipped("orders-by-key", sink=sink, select={"order_id": "order_id", "currency": "repeat(currency, 100)"})
    large = order("large")
    large.currency = "EURO"

    outcomes = play(replace(pipeline, max_payload_bytes=350), [change(None, order(), 1), change(None, large, 2)])

    assert outcomes == {"applied": 1, "set_aside": 1}


def test_a_record_whose_key_is_not_the_pipelines_is_filtered_even_when_it_is_wrong(
    shipped: PipelineOf, play: Playing
) -> None:
    assert play(shipped("orders-by-key", where_key="other"), [b"\xff", change(None, order(), 1)]) == {"filtered": 2}


def test_a_truncation_counts_once(shipped: PipelineOf, play: Playing) -> None:
    pipeline = shipped("us-share-holders", source=POSITIONS)

    outcomes = play(
        pipeline,
        encoded([created(8, "p"), created(16, "q")]),
        encoded([truncated(32), truncated(24), created(12, "p")]),
        encoded([truncated(32), created(40, "q")]),
    )

    assert outcomes == {"applied": 4, "superseded": 2, "duplicate": 1}
