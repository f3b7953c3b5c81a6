"""Dead letters as a real broker returns them, and their limit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry

from statecast_service.kafka import KafkaSettings
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import DeadLetterLimitError
from stream_processor.metrics import Metrics
from stream_processor.operation.checkpoints import Checkpoints, LocalFiles
from stream_processor.operation.dead_letters import DeadLetterLimits, read_dead_letters
from stream_processor.operation.topics import Topics
from testkit.stream_processor.fakes import FakeTopics
from testkit.stream_processor.process import wait_until

TOPIC = "orders.dead-letter"


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics({TOPIC: 100})


@pytest.fixture
def begin(tmp_path: Path, topics: FakeTopics, shipped: Callable[..., Pipeline]) -> Callable[[], DeadLetterLimits]:
    """Makes the limits as a restarted process would."""
    strict = shipped("orders-by-item", dead_letters={"limit": 5})
    return lambda: DeadLetterLimits(
        [shipped("orders-by-key"), strict], topics.end, Checkpoints(str(tmp_path), LocalFiles())
    )


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_those_from_before_the_first_start_do_not_count(
    begin: Callable[[], DeadLetterLimits], metrics: Metrics
) -> None:
    begin().check(metrics)

    assert metrics.registry.get_sample_value("stream_processor_dead_letters", {"topic": TOPIC}) == 0


def test_the_lowest_limit_holds_over_a_restart(
    begin: Callable[[], DeadLetterLimits], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] += 5
    begin().check(metrics)
    topics.ends[TOPIC] += 1

    with pytest.raises(DeadLetterLimitError, match=r"6 dead letters on orders\.dead-letter, the limit is 5"):
        begin().check(metrics)


def test_accepted_ones_no_longer_count(
    begin: Callable[[], DeadLetterLimits], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] += 6
    begin().accept(TOPIC)

    begin().check(metrics)


def test_a_topic_that_was_made_anew_counts_from_its_beginning(
    begin: Callable[[], DeadLetterLimits], topics: FakeTopics, metrics: Metrics
) -> None:
    begin().check(metrics)
    topics.ends[TOPIC] = 6

    with pytest.raises(DeadLetterLimitError, match="6 dead letters"):
        begin().check(metrics)


def test_all_partitions_are_read_to_their_ends(
    brokers: KafkaSettings, kafka: str, create_topic: Callable[..., str]
) -> None:
    topic = create_topic("letters", partitions=3)
    producer = Producer({"bootstrap.servers": kafka})
    for value, partition in ((b"a", 0), (b"b", 0), (None, 2)):
        producer.produce(topic, value, b"key", partition, headers=[("statecast-reason", b"why")])
    producer.flush()

    letters = list(read_dead_letters(brokers, topic, {0: 1}))

    assert sorted((each.partition, each.offset, each.value) for each in letters) == [(0, 1, b"b"), (2, 0, None)]
    assert {(each.key, each.reason, each.origin) for each in letters} == {(b"key", "why", None)}


def test_an_empty_topic_has_no_letters(brokers: KafkaSettings, create_topic: Callable[..., str]) -> None:
    assert list(read_dead_letters(brokers, create_topic("letters", partitions=1), {})) == []


def test_a_topic_says_how_large_a_record_it_takes(brokers: KafkaSettings, create_topic: Callable[..., str]) -> None:
    plain, large = create_topic("plain"), create_topic("large", max_message_bytes="6000000")
    topics = Topics(brokers)
    wait_until(lambda: topics.missing({plain: [], large: []}) is None, lambda: "the topics do not appear")

    assert topics.max_record_bytes([plain, large]) == {plain: 1_048_588, large: 6_000_000}
