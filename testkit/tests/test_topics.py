"""Topics of a real broker."""

from collections.abc import Callable

from confluent_kafka import Producer

from testkit.topics import Record, count_records, read_topic


def test_a_topic_is_read_to_its_end(kafka: str, create_topic: Callable[..., str]) -> None:
    topic = create_topic("read", partitions=2, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, b"one", b"key", 1, headers=[("name", b"text")])
    producer.produce(topic, None, b"key", 1)
    producer.flush(10)

    assert read_topic(kafka, topic) == [
        Record(1, 0, b"key", b"one", {"name": b"text"}),
        Record(1, 1, b"key", None, {}),
    ]
    assert count_records(kafka, topic) == 2
