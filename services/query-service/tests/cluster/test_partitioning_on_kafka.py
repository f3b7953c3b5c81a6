"""The partitioners agree with librdkafka's on the real broker."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer

from query_service.cluster.partitioning import HASHES, partition_of

GROUPS = [f"order-{number:06d}" for number in range(1, 200)] + ["ä", "a", "ab", "abc", "customer-0001", "item-0001"]


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("name", "settings"),
    [("murmur2", {"partitioner": "murmur2_random"}), ("crc32", {})],
    ids=["murmur2", "crc32, the default of librdkafka"],
)
def test_it_chooses_the_partition_that_a_producer_chooses(
    kafka: str, create_topic: Callable[..., str], name: str, settings: dict[str, str]
) -> None:
    topic = create_topic("partitioning", partitions=7)
    chosen: dict[str, int] = {}

    def note(error: KafkaError | None, message: Message) -> None:
        assert error is None
        chosen[(message.key() or b"").decode()] = message.partition() or 0

    producer = Producer({"bootstrap.servers": kafka, **settings})
    for group in GROUPS:
        producer.produce(topic, key=group.encode(), value=b"", on_delivery=note)
    producer.flush(30)

    assert chosen == {group: partition_of(group, 7, HASHES[name]) for group in GROUPS}
