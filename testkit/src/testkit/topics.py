"""Creates topics, and reads them from their start to their end as it is now."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from testkit.waiting import scaled, wait_until

READER_GROUP = "testkit-reader"
METADATA_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Record:
    """One record of a topic; an absent key is empty; `headers` by name; `time_ms` of its timestamp."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    headers: dict[str, bytes]
    time_ms: int = field(default=0, compare=False)


def create_topic(bootstrap: str, topic: str, partitions: int = 4, config: Mapping[str, str] | None = None) -> None:
    """Creates a topic with the broker's own number of replicas, and returns when clients are told about it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=dict(config or {}))
    admin.create_topics([new])[topic].result()

    # The broker answers that a topic is created before it tells everybody about it.
    def known() -> bool:
        metadata = admin.list_topics(topic, timeout=scaled(METADATA_TIMEOUT_S))
        return len(metadata.topics[topic].partitions) == partitions

    wait_until(known, f"the broker does not list {topic}", timeout_s=30, interval_s=0.01)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Deletes a topic, and returns when clients are no longer told about it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result()

    def gone() -> bool:
        return topic not in admin.list_topics(timeout=scaled(METADATA_TIMEOUT_S)).topics

    wait_until(gone, f"the broker lists {topic}", timeout_s=30, interval_s=0.01)


def configure_topic(bootstrap: str, topic: str, name: str, value: str) -> None:
    """Sets one key of a topic's configuration, and leaves the others."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result()


def grow_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Gives a topic more partitions, so many in all."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # a client that nobody holds ends before it answers
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()


def publish_checkpointed(bootstrap: str, topic: str, partition: int, offset: int) -> None:
    """Publishes that no record of a keyed topic before the offset is written again, as the processor does."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "stream-processor.checkpointed"})

    def is_published() -> bool:
        # The first coordinator of a broker may need a moment.
        with suppress(KafkaException):
            consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
            return True
        return False

    wait_until(is_published, "the offset cannot be committed", timeout_s=30)
    consumer.close()


def read_checkpointed(bootstrap: str, topic: str, partitions: int = 4) -> int:
    """Returns how many records of a keyed topic are published as never to be written again."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "stream-processor.checkpointed"})
    try:
        committed = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
    finally:
        consumer.close()
    return sum(max(each.offset, 0) for each in committed)


def count_records(bootstrap: str, topic: str) -> int:
    """Returns how many records the topic has ever held."""
    with _reader(bootstrap) as consumer:
        return sum(_ends(consumer, topic).values())


def read_topic(bootstrap: str, topic: str) -> list[Record]:
    """Returns every record between the topic's start and its end; those of one partition in their order."""
    return _read(bootstrap, topic, lambda _: 0)


def read_newest(bootstrap: str, topic: str, count: int) -> list[Record]:
    """Returns the last `count` records of each partition, or as many as there are; none of no topic."""
    return _read(bootstrap, topic, lambda end: max(0, end - count))


def _read(bootstrap: str, topic: str, start: Callable[[int], int]) -> list[Record]:
    """Reads from the offset that `start` makes of the end of each partition, to the end."""
    with _reader(bootstrap) as consumer:
        partitions = _ends(consumer, topic)
        consumer.assign([TopicPartition(topic, partition, start(end)) for partition, end in partitions.items()])
        records: list[Record] = []
        unread = set(partitions)
        deadline = time.monotonic() + scaled(READ_TIMEOUT_S)
        while unread:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            # Returns when so many have come, or after the time-out with those that have.
            for message in consumer.consume(10_000, timeout=0.2):
                error = message.error()
                if error is None:
                    records.append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(cast(int, message.partition()))
                else:
                    raise AssertionError(f"reading {topic} failed: {error}")
        return records


@contextmanager
def _reader(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": READER_GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _ends(consumer: Consumer, topic: str) -> dict[int, int]:
    timeout_s = scaled(METADATA_TIMEOUT_S)
    partitions = consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions
    return {
        partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout_s)[1]
        for partition in partitions
    }


def _record(message: Message) -> Record:
    headers = dict(cast(list[tuple[str, bytes]], message.headers() or []))
    partition, offset = cast(int, message.partition()), cast(int, message.offset())
    return Record(partition, offset, message.key() or b"", message.value(), headers, message.timestamp()[1])
