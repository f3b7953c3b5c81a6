"""From changes to the records of a keyed topic: encoding, grouping and layout together."""

from collections.abc import Iterable

import pytest
from pyspark.sql import Row

from statecast.orders.v1.order_pb2 import Order
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import PARTITIONS, OneBatch

pytestmark = pytest.mark.timeout(600)


def keyed(lines: Iterable[Row]) -> dict[str, Row]:
    return {bytes(line.key).decode(): line for line in lines}


def test_a_row_is_the_payload_of_its_record_and_a_tombstone_has_it_in_a_header(
    shipped: PipelineOf, batch: OneBatch
) -> None:
    created = change(None, order(items=["item-1", "item-2"]), sequence=7, epoch=3)
    deleted = change(order("gone"), None, sequence=8)

    rows = keyed(batch.written(shipped("orders-by-key"), created, deleted))

    record = StateRecord.FromString(bytes(rows["order-1"].value))
    assert (record.epoch, record.sequence, record.source) == (3, 7, created.source)
    assert Order.FromString(record.payload) == created.after
    assert rows["order-1"].headers is None
    assert rows["gone"].value is None
    [header] = rows["gone"].headers
    record = StateRecord.FromString(bytes(header.value))
    assert header.key == "statecast-state-record"
    assert (record.sequence, record.source, record.payload) == (8, deleted.source, b"")


def test_the_newest_wins_in_any_order_and_an_epoch_wins_over_sequences(shipped: PipelineOf, batch: OneBatch) -> None:
    changes = [
        change(None, order("a"), 1),
        change(order("a"), None, 9),
        change(order("a"), order("a"), 5),
        change(None, order("b"), 100, epoch=1),
        change(None, order("b", second=1), 2, epoch=2),
    ]

    rows = keyed(batch.written(shipped("orders-by-key"), *reversed(changes), *changes))

    assert rows["a"].value is None
    record = StateRecord.FromString(bytes(rows["b"].value))
    assert (record.epoch, record.sequence) == (2, 2)


def test_the_members_of_a_group_are_on_the_partition_of_the_group(shipped: PipelineOf, batch: OneBatch) -> None:
    changes = [change(None, order(f"order-{n}", customer="abc", second=n), n) for n in range(1, 9)]

    rows = keyed(batch.written(shipped("orders-by-customer"), *changes))

    assert len(rows) == 8
    # murmur2("abc") is 479470107 in Kafka's own tests.
    assert {line.partition for line in rows.values()} == {479470107 % PARTITIONS}


def test_poison_makes_no_record(shipped: PipelineOf, batch: OneBatch) -> None:
    values = b"\xff", None, change(None, order(items=[""]), 1), change(None, order(), 2)

    rows = keyed(batch.written(shipped("orders-by-item"), *values))

    assert set(rows) == {"item-1\0" + "2024-08-28T12:00:00.000000Z" + "\0order-1"}
