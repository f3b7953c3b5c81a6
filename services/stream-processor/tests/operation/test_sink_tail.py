"""The lag of what stands on keyed topics, from a real broker."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.operation.sink_tail import SAMPLE, SinkTail
from stream_processor.operation.topics import Topics
from stream_processor.steps.sink import TOMBSTONE_HEADER

pytestmark = pytest.mark.kafka

COMMITTED_S = 1_700_000_000


@pytest.fixture
def producer(kafka: str) -> Producer:
    return Producer({"bootstrap.servers": kafka})


@pytest.fixture
def topic(create_topic: Callable[..., str], producer: Producer) -> str:
    """A topic whose partitions have a record each, so that they have leaders."""
    made = create_topic("keyed", partitions=2)
    for partition in (0, 1):
        producer.produce(made, encoded(), partition=partition)
    producer.flush()
    return made


def encoded() -> bytes:
    record = StateRecord(epoch=1, sequence=1)
    record.source.commit_time.seconds = COMMITTED_S
    return record.SerializeToString()


def test_it_measures_what_came_since_the_last_look(kafka: str, topic: str, producer: Producer) -> None:
    tail = SinkTail(kafka, [topic], Topics(kafka))
    tail.look()

    producer.produce(topic, encoded(), partition=0, timestamp=COMMITTED_S * 1000 + 250)
    header: dict[str, str | bytes | None] = {TOMBSTONE_HEADER: encoded()}
    producer.produce(topic, None, b"deleted", partition=1, timestamp=COMMITTED_S * 1000 + 500, headers=header)
    producer.flush()
    written, lags = tail.look()

    assert written == {topic: 2}
    assert sorted(lags[topic]) == pytest.approx([0.25, 0.5])
    assert tail.look() == ({topic: 0}, {topic: []})
    tail.close()


def test_it_reads_the_newest_records_only(kafka: str, topic: str, producer: Producer) -> None:
    tail = SinkTail(kafka, [topic], Topics(kafka))
    tail.look()
    for number in range(3 * SAMPLE):
        producer.produce(topic, encoded(), partition=0, timestamp=COMMITTED_S * 1000 + number * 1000)
    producer.flush()
    written, lags = tail.look()

    assert written == {topic: 3 * SAMPLE}
    assert sorted(lags[topic]) == list(range(2 * SAMPLE, 3 * SAMPLE))
    tail.close()


def test_what_is_no_state_record_has_no_lag(kafka: str, topic: str, producer: Producer) -> None:
    tail = SinkTail(kafka, [topic], Topics(kafka))
    tail.look()
    for value in (b"\xff", StateRecord(epoch=1).SerializeToString(), None):
        producer.produce(topic, value, partition=0, timestamp=int(time.time() * 1000))
    producer.flush()

    assert tail.look() == ({topic: 3}, {topic: []})
    tail.close()
