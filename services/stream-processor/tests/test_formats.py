"""The same pipeline on either format of its source gives the same records."""

from collections.abc import Callable

import pytest
from pyspark.sql import Row

from statecast.orders.v1.order_pb2 import Order, OrderChange
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.debezium import debezium
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

CHANGES = [
    change(None, order(items=["item-1", "item-2"]), 1),
    change(None, order("order-2"), 2),
    change(order(items=["item-1", "item-2"]), order(customer="customer-2", items=["item-2"], second=3.5), 3),
    change(order("order-2"), None, 4),
]


@pytest.mark.parametrize("name", ["orders-by-key", "orders-by-customer", "orders-by-item"])
def test_the_same_changes_in_either_format_are_the_same_records(
    shipped: PipelineOf, batch: OneBatch, name: str
) -> None:
    message = "statecast.orders.v1.OrderChange"

    def written(encoding: str, encode: Callable[[OrderChange], bytes]) -> list[tuple[object, ...]]:
        pipeline = shipped(name, source={"topic": "orders", "message": message, "format": encoding})
        lines = batch.lines(pipeline, *map(encode, CHANGES)).collect()
        return sorted(((bytes(line.key), line.partition, *record(line)) for line in lines), key=str)

    assert written("debezium-json", debezium) == written("protobuf", OrderChange.SerializeToString) != []


def record(line: Row) -> tuple[bool, StateRecord, Order]:
    """Returns whether the record is a tombstone, its state record without the payload, and its row."""
    state = StateRecord.FromString(bytes(line.value or line.headers[0].value))
    row = Order.FromString(state.payload)
    state.payload = b""
    return line.value is None, state, row
