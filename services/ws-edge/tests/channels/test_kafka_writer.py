"""Records reach a real broker, in their order and in the partition of their group."""

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from statecast.orders.v1.order_pb2 import Order
from statecast.partitioning import partition_of
from statecast_service.kafka import KafkaSettings
from ws_edge.channels.kafka_writer import KafkaWriter
from ws_edge.errors import UnavailableError
from ws_edge.model.states import StoreKey

CreateTopic = Callable[..., str]
TIMEOUT_S = 30.0
Kept = tuple[int | None, bytes | None, bytes | None]


def records_of(bootstrap: str, topic: str, number: int, count: int) -> list[Kept]:
    """Returns the first records of a partition: offset, key and value."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, number, 0)])
        return [(each.offset(), each.key(), each.value()) for each in consumer.consume(count, TIMEOUT_S)]
    finally:
        consumer.close()


async def test_records_of_a_group_are_together_and_in_order(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    topic = create_topic("kept", partitions=4)
    writer = KafkaWriter(brokers, TIMEOUT_S)
    one, two = Order(order_id="one"), Order(order_id="two")
    first = await writer.write({StoreKey(topic, "g"): one, StoreKey(topic, "g", "s", "m"): two})
    second = await writer.write({StoreKey(topic, "g"): None})

    assert (first, second) == (1, 2)
    assert records_of(kafka, topic, partition_of("g", 4), 3) == [
        (0, b"g", one.SerializeToString()),
        (1, b"g\0s\0m", two.SerializeToString()),
        (2, b"g", None),
    ]


async def test_many_writes_at_once_each_get_their_own_offset(brokers: KafkaSettings, create_topic: CreateTopic) -> None:
    topic = create_topic("kept", partitions=1)
    writer = KafkaWriter(brokers, TIMEOUT_S)
    offsets = await asyncio.gather(*(writer.write({StoreKey(topic, "g"): Order(total_cents=n)}) for n in range(50)))

    assert sorted(offsets) == list(range(50))


async def test_the_topic_of_a_store_begins_with_the_prefix(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    topic = create_topic("kept", partitions=1)
    row = Order(order_id="one")
    await KafkaWriter(brokers, TIMEOUT_S, topic[:3]).write({StoreKey(topic[3:], "g"): row})

    assert records_of(kafka, topic, 0, 1) == [(0, b"g", row.SerializeToString())]


async def test_an_unknown_topic_is_unavailable(brokers: KafkaSettings) -> None:
    with pytest.raises(UnavailableError):
        await KafkaWriter(brokers, 2.0).write({StoreKey("no-such-topic", "g"): Order()})


async def test_an_unreachable_broker_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="Kafka has not acknowledged"):
        await KafkaWriter(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), 0.5).write({StoreKey("kept", "g"): Order()})
