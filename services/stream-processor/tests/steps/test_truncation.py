"""TRUNCATE of a table, through the real flow in micro-batches, in any order of a topic's partitions."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from statecast.sales.v1.hourly_sales_pb2 import HourlySales
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.pipeline.pipeline import Pipeline
from testkit.stream_processor.changes import START
from testkit.stream_processor.micro_batches import BatchesOf, MicroBatches, PipelineOf, few_but_rich, pieces
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.one_batch import OneBatch
from testkit.stream_processor.process import wait_until
from testkit.stream_processor.truncated_positions import (
    POSITIONS,
    Event,
    created,
    encoded,
    event,
    held,
    history,
    left,
    of_rows,
    partitioned,
    position,
    read,
    read_by_snapshot,
    truncated,
)
from testkit.topics import Record

pytestmark = pytest.mark.timeout(600)

Playing: TypeAlias = Callable[..., MicroBatches]

INVOICES = {
    "topic": "invoices",
    "message": "statecast.sales.v1.InvoiceChange",
    "format": "debezium-json",
    "key": "invoice_number",
}
SHAPES: dict[str, dict[str, Any]] = {
    "latest": {"group_by": "position_id", "keep": "latest", "sink": {"topic": "by-key"}},
    "members": {
        "keep": {"members": {"key": "position_id", "sort": "amount"}},
        "sink": {"topic": "by-client"},
    },
    "aggregate": {},
}


def each_shape(in_ci: str) -> pytest.MarkDecorator:
    """A test of each shape, of which CI has time for one."""
    shapes = [pytest.param(name, marks=[] if name == in_ci else [pytest.mark.long]) for name in SHAPES]
    return pytest.mark.parametrize("shape", shapes)


@pytest.fixture
def positions(shipped: PipelineOf) -> PipelineOf:
    """Makes a pipeline of a shape over Debezium's changes of positions: `positions("latest", forget_deleted="1s")`."""

    def make(shape: str, **replaced: object) -> Pipeline:
        return shipped("us-share-holders", **{"source": POSITIONS, **SHAPES[shape], **replaced})

    return make


@pytest.fixture
def play(batches_of: BatchesOf) -> Playing:
    """Plays batches of events through a pipeline, from a checkpoint of its own."""

    def play(pipeline: Pipeline, *batches: Iterable[Event]) -> MicroBatches:
        played = batches_of(pipeline)
        go_on(played, *batches)
        return played

    return play


def go_on(played: MicroBatches, *batches: Iterable[Event]) -> None:
    """Starts the query again, with more batches."""
    for each in batches:
        played.add(encoded(each))
    played.run()


@each_shape(in_ci="aggregate")
def test_what_came_before_a_truncation_goes_and_what_comes_after_it_stays(
    positions: PipelineOf, play: Playing, shape: str
) -> None:
    played = play(
        positions(shape),
        [created(8, "p"), created(16, "q", "b", 2), created(24, "r")],
        [truncated(32), created(40, "q", "a", 5)],
        [created(48, "s", "b", 7)],
    )

    assert held(played.written, shape) == of_rows([position("q", "a", 5), position("s", "b", 7)], shape)


@each_shape(in_ci="latest")
def test_rows_from_before_a_truncation_that_are_read_after_it_stay_away(
    positions: PipelineOf, play: Playing, shape: str
) -> None:
    played = play(positions(shape), [truncated(32)])
    go_on(played, [created(8, "p"), created(40, "q", "b")], [event("u", 16, after=position("p", "b"))])

    assert held(played.written, shape) == of_rows([position("q", "b")], shape)


@each_shape(in_ci="members")
def test_what_a_crash_left_on_the_topic_goes_though_the_replay_reads_the_truncation_first(
    positions: PipelineOf, play: Playing, shape: str
) -> None:
    before, after = [created(8, "p"), event("u", 16, after=position("p", "b", 3))], [truncated(32)]
    crashed, replayed = play(positions(shape), before), play(positions(shape), after, before)

    assert held(crashed.written + replayed.written, shape) == {}


def test_a_row_that_a_snapshot_reads_after_a_truncation_comes_in(positions: PipelineOf, play: Playing) -> None:
    batches = [[created(8, "p")], [truncated(32)], [read_by_snapshot(24, "old"), read_by_snapshot(48, "new")]]
    played = play(positions("latest"), *batches, [event("u", 56, after=position("new", amount=2))])

    assert held(played.written, "latest") == of_rows([position("new", amount=2)], "latest")


@each_shape(in_ci="latest")
def test_a_truncation_that_comes_again_or_late_writes_nothing(positions: PipelineOf, play: Playing, shape: str) -> None:
    played = play(positions(shape), [created(8, "p")], [truncated(32)], [created(40, "q")])
    written = len(played.written)
    go_on(played, [truncated(32)], [truncated(24), truncated(32)])

    assert len(played.written) == written
    assert held(played.written, shape) == of_rows([position("q")], shape)


@pytest.mark.parametrize("shape", ["latest", pytest.param("aggregate", marks=pytest.mark.long)])
def test_thousands_of_rows_leave_and_the_state_with_them(positions: PipelineOf, play: Playing, shape: str) -> None:
    count = 20_000
    played = play(positions(shape), [created(8 * number, f"p-{number}") for number in range(1, count + 1)])
    lively = played.state_rows
    go_on(played, [truncated(8 * count + 8)], [created(8 * count + 16, "new")])

    groups, state_partitions = (1 if shape == "aggregate" else 0), 2
    assert lively == count + groups
    assert played.state_rows == state_partitions + 1 + groups
    assert held(played.written, shape) == of_rows([position("new")], shape)


def test_a_truncation_is_forgotten_as_a_deletion_is(positions: PipelineOf, play: Playing) -> None:
    played = play(positions("latest", forget_deleted="1s"), [created(8, "p")], [truncated(32)])

    def forgotten() -> bool:
        go_on(played, [created(16, "q")])
        return "q" in held(played.written, "latest")

    # Of the row that left, the topic holds the truncation's place; of another, it holds nothing.
    wait_until(forgotten, lambda: f"{played.state_rows} rows")


def test_windows_that_were_closed_stay(shipped: PipelineOf, play: Playing) -> None:
    window = {"time": "created_at", "size": "1h", "lateness": "30m"}
    pipeline = shipped("hourly-sales-by-store", source=INVOICES, window=window)

    def sold(lsn: int, number: str, hours: float) -> Event:
        created_at = (START + timedelta(hours=hours)).isoformat()
        row = {"invoice_number": number, "store_id": "s", "total_amount_cents": 100, "created_at": created_at}
        return event("c", lsn, after=row, hours=hours)

    played = play(pipeline, [sold(8, "a", 0.5), sold(16, "b", 1.5)], [truncated(24, hours=1.6)], [sold(32, "c", 1.7)])

    windows = {key: HourlySales.FromString(state.payload) for key, state in read_fenced(played.written).items()}
    assert [(key.split("\0")[1], sales.invoices) for key, sales in windows.items()] == [
        ("2024-08-28T12:00:00.000000Z", 1),
        ("2024-08-28T13:00:00.000000Z", 1),
    ]


@each_shape(in_ci="members")
@pytest.mark.parametrize(
    "full", [pytest.param(False, id="default"), pytest.param(True, id="full", marks=pytest.mark.long)]
)
@few_but_rich
@given(seed=st.integers(0, 2**32 - 1))
def test_a_replay_in_another_order_ends_with_the_rows_of_the_table(
    positions: PipelineOf, play: Playing, shape: str, full: bool, seed: int
) -> None:
    """The pieces are the same: of a row's changes in one batch the newest is written, and Spark repeats a batch."""
    chance = Random(seed)
    events = history(chance, full)
    partitions = [pieces(partition, 2) for partition in partitioned(events, chance)]
    crashed = play(positions(shape), *read(partitions, chance)[: chance.randrange(1, 5)])
    replayed = play(positions(shape), *read(partitions, chance))

    assert held(crashed.written + replayed.written, shape) == of_rows(left(events), shape)


@pytest.mark.long
def test_the_sequence_of_a_group_does_not_depend_on_the_order(positions: PipelineOf, play: Playing) -> None:
    events = [created(8, "p"), event("u", 16, after=position("p")), event("u", 24, after=position("p", "b"))]
    orders = ([*events, truncated(32)], [truncated(32), *events], [events[0], truncated(32), *events[1:]])

    ends = [play(positions("aggregate"), *[[each] for each in order]).written for order in orders]

    sequences = [{key: max(_sequences(records, key)) for key in ("a", "b")} for records in ends]
    assert sequences == [{"a": 4, "b": 2}] * 3
    # In order, each record is newer than the one before.
    assert _sequences(ends[0], "a") == [1, 3, 4]


def _sequences(records: Iterable[Record], key: str) -> list[int]:
    of_key = [each for each in records if each.key == key.encode()]
    states = [StateRecord.FromString(each.value or each.headers["statecast-state-record"]) for each in of_key]
    return [state.sequence for state in states]


def test_a_state_of_another_number_of_partitions_is_refused(
    spark: SparkSession, batch: OneBatch, positions: PipelineOf
) -> None:
    written = batch.lines(positions("latest"), *encoded([truncated(32)]))
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    try:
        with pytest.raises(Py4JJavaError, match="as many shuffle partitions as its checkpoint has"):
            written.collect()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)


def test_an_insert_only_table_is_not_truncated_and_no_key_begins_with_a_nul(
    batch: OneBatch, positions: PipelineOf
) -> None:
    events = encoded([truncated(32), created(8, "\0p")])

    assert batch.problems(positions("aggregate", insert_only=True), *events) == [
        "insert_only is true, but operation is OPERATION_TRUNCATE",
        "after.position_id begins with a NUL, which no row's key may",
    ]


def test_a_route_passes_nothing_on_of_a_truncation(batch: OneBatch, positions: PipelineOf) -> None:
    source = {name: value for name, value in POSITIONS.items() if name != "key"}
    pipeline = positions("latest", keep="route", source=source)

    assert batch.problems(pipeline, *encoded([truncated(32)])) == [None]
    assert batch.lines(pipeline, *encoded([truncated(32)])).collect() == []
