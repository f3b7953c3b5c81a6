"""Reads the whole change log, as the source wrote it."""

from confluent_kafka import Consumer, KafkaError, TopicPartition

from drivers.waiting import scaled
from statecast.orders.v1.order_pb2 import OrderChange


def count_changes(bootstrap: str, topic: str = "orders") -> int:
    """How many records the log has ever held."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "e2e-change-log"})
    try:
        partitions = consumer.list_topics(topic, timeout=scaled(10)).topics[topic].partitions
        ends = (consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=scaled(10)) for each in partitions)
        return sum(high for _, high in ends)
    finally:
        consumer.close()


def read_changes(bootstrap: str, topic: str = "orders") -> list[OrderChange]:
    """Returns every decodable change between the log's start and its end as it is now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "e2e-change-log",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        changes: list[OrderChange] = []
        unread = set(partitions)
        while unread:
            batch = consumer.consume(10_000, timeout=scaled(10))
            assert batch, f"{topic} could not be read to its end"
            for record in batch:
                error = record.error()
                if error is None:
                    changes.append(OrderChange.FromString(record.value() or b""))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(record.partition())
                else:
                    raise AssertionError(f"reading {topic} failed: {error}")
        return changes
    finally:
        consumer.close()
