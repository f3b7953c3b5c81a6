"""Reads topics from their start to their end, as they are now."""

import time
from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from drivers.waiting import scaled


@dataclass(frozen=True)
class Record:
    """One record of a topic; `headers` by name."""

    partition: int
    key: bytes
    value: bytes | None
    headers: dict[str, bytes]


def count_records(bootstrap: str, topic: str) -> int:
    """How many records the topic has ever held."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "e2e-reader"})
    try:
        partitions = consumer.list_topics(topic, timeout=scaled(10)).topics[topic].partitions
        ends = (consumer.get_watermark_offsets(TopicPartition(topic, each), timeout=scaled(10)) for each in partitions)
        return sum(high for _, high in ends)
    finally:
        consumer.close()


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """Every record between the topic's start and its end; those of one partition in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "e2e-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=scaled(10)).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        records: list[Record] = []
        unread = set(partitions)
        deadline = time.monotonic() + scaled(60)
        while unread:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            # Returns when so many have come, or after the time-out with what has.
            for message in consumer.consume(10_000, timeout=0.2):
                error = message.error()
                if error is None:
                    records.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(cast(int, message.partition()))
                else:
                    raise AssertionError(f"reading {topic} failed: {error}")
        return records
    finally:
        consumer.close()


def _record(message: Message) -> Record:
    headers = dict(cast(list[tuple[str, bytes]], message.headers() or []))
    return Record(cast(int, message.partition()), message.key() or b"", message.value(), headers)
