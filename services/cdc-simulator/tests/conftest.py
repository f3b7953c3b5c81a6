"""What the tests of the simulator share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from cdc_simulator.order_row import Item, OrderRow, Shop, Status
from statecast.orders.v1.order_pb2 import OrderChange

ReadTopic = Callable[[str], list[tuple[int, bytes, OrderChange]]]


@pytest.fixture
def shop() -> Shop:
    return Shop(seed=7, orders=50, customers=5, items=20)


@pytest.fixture
def row() -> OrderRow:
    items = (Item("item-0001", 2, 150), Item("item-0002", 1, 99))
    return OrderRow(42, "customer-0003", Status.PAID, items, 399, "EUR", 1_000_001, 2_000_002, "2024-08-28", "")


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "database" / "orders.sqlite3"


@pytest.fixture
def read_topic(kafka: str) -> ReadTopic:
    """Reads a topic to its end: partition, key and change of each record, in order within each partition."""

    def read(topic: str) -> list[tuple[int, bytes, OrderChange]]:
        consumer = Consumer({"bootstrap.servers": kafka, "group.id": "reader", "enable.auto.commit": False})
        try:
            places = [TopicPartition(topic, each) for each in consumer.list_topics(topic, 10).topics[topic].partitions]
            ends = {place.partition: consumer.get_watermark_offsets(place, 10)[1] for place in places}
            consumer.assign([TopicPartition(topic, place.partition, OFFSET_BEGINNING) for place in places])
            records: list[tuple[int, bytes, OrderChange]] = []
            while len(records) < sum(ends.values()):
                record = consumer.poll(10)
                assert record is not None, "the topic holds fewer records than its offsets say"
                assert record.error() is None, record.error()
                partition, key, value = record.partition(), record.key(), record.value()
                assert partition is not None
                assert key is not None
                assert value is not None
                records.append((partition, key, OrderChange.FromString(value)))
            return records
        finally:
            consumer.close()

    return read
