"""The topics that exist, and their end offsets."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from query_service.cluster.topic_watch import TopicWatch
from query_service.settings import Settings
from query_service.storage.progress import EndOffset
from query_service.storage.store_directory import Topic
from statecast_service.kafka import connect
from testkit.pytest_plugin import CreateTopic
from testkit.waiting import wait_until


class Reports:
    """Collects the reports of a watch."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.asked_at = 0.0

    def wanted(self) -> list[tuple[str, int]]:
        return [(topic.name, partition) for topic in self.topics.values() for partition in range(topic.partitions)]

    def note_end_offsets(self, end_offsets: Mapping[tuple[str, int], EndOffset]) -> None:
        for key, end in end_offsets.items():
            self.ends[key] = end.offset
            self.asked_at = end.asked_at


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, "the watch has not reported it", timeout_s=30)


@pytest.fixture
def watch(kafka: str) -> Iterator[Callable[..., Reports]]:
    """Starts a watch of topics."""
    watches: list[TopicWatch] = []

    def start(*topics: str, bootstrap: str = kafka) -> Reports:
        reports = Reports()
        settings = Settings(kafka_bootstrap=bootstrap, end_offsets_interval_ms=50)
        note_topics = partial(setattr, reports, "topics")
        watching = TopicWatch(
            settings, lambda: frozenset(topics), reports.wanted, note_topics, reports.note_end_offsets, describe_s=0.1
        )
        watches.append(watching)
        watching.start()
        return reports

    yield start
    for each in watches:
        each.stop(10)


def test_it_reports_the_topic_and_its_end_offsets_as_they_grow(
    kafka: str, create_topic: CreateTopic, watch: Callable[..., Reports]
) -> None:
    topic = create_topic("watched", partitions=2)
    reports = watch(topic)
    until(lambda: reports.ends == {(topic, 0): 0, (topic, 1): 0})
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, b"value", partition=1)
    producer.flush(10)
    until(lambda: reports.ends == {(topic, 0): 0, (topic, 1): 1})

    assert reports.topics[topic].partitions == 2
    assert reports.topics[topic].epoch > 0
    assert reports.asked_at <= time.monotonic()


def test_a_topic_that_is_made_anew_gets_another_epoch(
    kafka: str, create_topic: CreateTopic, watch: Callable[..., Reports]
) -> None:
    topic = create_topic("anew", partitions=1)
    reports = watch(topic)
    until(lambda: topic in reports.topics)
    first = reports.topics[topic]
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.delete_topics([topic])[topic].result()
    until(lambda: topic not in admin.list_topics(timeout=5).topics)
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result()
    until(lambda: reports.topics[topic] != first)

    assert reports.topics[topic].epoch != first.epoch
    assert reports.topics[topic].topic_id != first.topic_id


def test_a_topic_that_does_not_exist_does_not_keep_others_waiting(
    create_topic: CreateTopic, watch: Callable[..., Reports]
) -> None:
    topic = create_topic("there", partitions=1)
    reports = watch(topic, "not-there")
    until(lambda: (topic, 0) in reports.ends)

    assert set(reports.topics) == {topic}


def test_end_offsets_are_read_while_no_description_comes(
    kafka: str, create_topic: CreateTopic, watch: Callable[..., Reports], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic("watched", partitions=1)
    reports = watch(topic)
    until(lambda: reports.ends == {(topic, 0): 0})

    def silent(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(AdminClient, "describe_topics", silent)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, b"value", partition=0)
    producer.flush(10)

    until(lambda: reports.ends == {(topic, 0): 1})


class StuckConsumer(Consumer):
    """A consumer that knows no partition, as librdkafka's may when the broker shuts down."""

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))


def test_a_consumer_that_lost_its_way_is_replaced(
    create_topic: CreateTopic, watch: Callable[..., Reports], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic("watched", partitions=1)
    kinds = [Consumer, StuckConsumer]

    def connect_next(client: type[Any], settings: Settings, options: dict[str, Any] | None = None) -> Any:
        return connect(kinds.pop() if client is Consumer else client, settings, options)

    monkeypatch.setattr("query_service.cluster.topic_watch.connect", connect_next)
    reports = watch(topic)
    until(lambda: reports.ends == {(topic, 0): 0})

    assert kinds == []
