"""From changes to the records of a keyed topic: encoding, grouping and layout together."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, Row

from statecast.orders.v1.order_pb2 import Order
from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import change, order

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def keyed(functions: Functions, records: Callable[..., DataFrame]) -> Callable[..., dict[str, Row]]:
    """The records that the changes become, by key."""

    def run(pipeline: Pipeline, *changes: object) -> dict[str, Row]:
        written = written_records([records(*changes)], pipeline, 4, 1, functions)
        rows = written.where(written.topic == pipeline.sink_topic).collect()
        return {bytes(line.key).decode(): line for line in rows}

    return run


def test_a_row_is_the_payload_of_its_record(
    shipped: Callable[..., Pipeline], keyed: Callable[..., dict[str, Row]]
) -> None:
    order_change = change(None, order(items=["item-1", "item-2"]), sequence=7, epoch=3)

    row = keyed(shipped("orders-by-key"), order_change)["order-1"]

    record = StateRecord.FromString(bytes(row.value))
    assert (record.epoch, record.sequence, record.source) == (3, 7, order_change.source)
    assert Order.FromString(record.payload) == order_change.after
    assert row.headers is None


def test_a_tombstone_carries_its_record_in_a_header(
    shipped: Callable[..., Pipeline], keyed: Callable[..., dict[str, Row]]
) -> None:
    order_change = change(order(), None, sequence=7)

    row = keyed(shipped("orders-by-key"), order_change)["order-1"]

    assert row.value is None
    [header] = row.headers
    record = StateRecord.FromString(bytes(header.value))
    assert header.key == "statecast-state-record"
    assert (record.sequence, record.source, record.payload) == (7, order_change.source, b"")


def test_the_newest_wins_in_any_order_and_an_epoch_wins_over_sequences(
    shipped: Callable[..., Pipeline], keyed: Callable[..., dict[str, Row]]
) -> None:
    changes = [
        change(None, order("a"), 1),
        change(order("a"), None, 9),
        change(order("a"), order("a"), 5),
        change(None, order("b"), 100, epoch=1),
        change(None, order("b", second=1), 2, epoch=2),
    ]

    rows = keyed(shipped("orders-by-key"), *reversed(changes), *changes)

    assert rows["a"].value is None
    record = StateRecord.FromString(bytes(rows["b"].value))
    assert (record.epoch, record.sequence) == (2, 2)


def test_the_members_of_a_group_are_on_the_partition_of_the_group(
    shipped: Callable[..., Pipeline], keyed: Callable[..., dict[str, Row]], functions: Functions
) -> None:
    changes = [change(None, order(f"order-{n}", customer="abc", second=n), n) for n in range(1, 9)]

    rows = keyed(shipped("orders-by-customer"), *changes)

    assert len(rows) == 8
    # murmur2("abc") is 479470107 in Kafka's own tests.
    assert {line.partition for line in rows.values()} == {479470107 % 4}


def test_poison_makes_no_record(shipped: Callable[..., Pipeline], keyed: Callable[..., dict[str, Row]]) -> None:
    rows = keyed(shipped("orders-by-item"), b"\xff", None, change(None, order(items=[""]), 1), change(None, order(), 2))

    assert set(rows) == {"item-1\0" + "2024-08-28T12:00:00.000000Z" + "\0order-1"}
