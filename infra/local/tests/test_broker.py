"""The local broker."""

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer


@pytest.mark.kafka
def test_it_keeps_what_is_produced(kafka: str, create_topic: Callable[..., str]) -> None:
    topic = create_topic("kept", partitions=1)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, key=b"key", value=b"value")
    producer.flush(10)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])

    record = consumer.poll(10)
    consumer.close()

    assert record is not None
    assert (record.key(), record.value()) == (b"key", b"value")
