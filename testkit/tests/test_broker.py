"""A real broker."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from testkit import broker as subject
from testkit.broker import Broker


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


def test_without_its_jars_it_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "LIBS", tmp_path)

    with pytest.raises(FileNotFoundError, match=f"no Kafka jars in {tmp_path}: run `make install`"):
        Broker(tmp_path, 1, 2).prepare()
