"""Counts and measures the records of the sinks."""

import time
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaException, Producer

from statecast.state.v1.state_pb2 import StateRecord
from statecast_service.kafka import KafkaSettings
from stream_processor.metrics import Metrics
from stream_processor.run.output import MAX_SAMPLE, RECENT_LOOKS, Output, SinkTail, lag_of, summary
from stream_processor.run.plan import QueryPlan, plan, topics_of
from stream_processor.steps.encode import TOMBSTONE_HEADER
from testkit.pytest_plugin import CreateTopic
from testkit.stream_processor.fakes import FakeTail
from testkit.stream_processor.micro_batches import PipelineOf


@pytest.fixture
def plans(shipped: PipelineOf) -> list[QueryPlan]:
    """The queries `keyed`, which writes StateRecords to a topic of that name, and `plain`, which writes messages."""
    pipelines = [
        shipped("orders-by-key", name="keyed", sink={"topic": "keyed"}),
        shipped("home-delivery", name="plain", sink={"topic": "plain"}, select=None),
    ]
    return plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))


def value(metrics: Metrics, name: str, query: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"stream_processor_{name}", {"query": query, **labels})


def test_records_are_counted_and_lags_of_keyed_topics_observed(metrics: Metrics, plans: list[QueryPlan]) -> None:
    tail = FakeTail(({"keyed": 3, "plain": 2}, {"keyed": [0.02, 0.2], "plain": [9.0]}))
    output = Output(tail.look, metrics)

    output.look(plans)

    assert (value(metrics, "output_rows_total", "keyed"), value(metrics, "output_rows_total", "plain")) == (3, 2)
    assert value(metrics, "lag_seconds_bucket", "keyed", le="0.025") == 1
    assert value(metrics, "lag_seconds_count", "keyed") == 2
    assert value(metrics, "lag_seconds_count", "plain") is None
    assert (output.rate, output.quantile(0), output.quantile(1)) == (5, 0.02, 0.2)


def test_only_recent_looks_count_for_people(metrics: Metrics, plans: list[QueryPlan]) -> None:
    tail = FakeTail(({"keyed": 100}, {"keyed": [60.0]}))
    output = Output(tail.look, metrics)
    output.look(plans[:1])
    tail.seen = ({"keyed": 1}, {"keyed": []})
    for _ in range(RECENT_LOOKS):
        output.look(plans[:1])

    assert (output.rate, output.quantile(0.5)) == (1, None)


def test_a_broker_that_is_away_changes_nothing(metrics: Metrics, plans: list[QueryPlan]) -> None:
    output = Output(FakeTail(KafkaException("away")).look, metrics)

    output.look(plans)

    assert value(metrics, "output_rows_total", "keyed") is None


COMMITTED_S = 1_700_000_000


@pytest.fixture
def producer(kafka: str) -> Producer:
    return Producer({"bootstrap.servers": kafka})


@pytest.fixture
def topic(create_topic: CreateTopic, producer: Producer) -> str:
    """A topic with a record on each partition, so that they have leaders."""
    topic = create_topic("keyed", partitions=2)
    for partition in (0, 1):
        producer.produce(topic, encoded(), partition=partition)
    producer.flush()
    return topic


def encoded() -> bytes:
    record = StateRecord(epoch=1, sequence=1)
    record.source.commit_time.seconds = COMMITTED_S
    return record.SerializeToString()


def test_it_measures_what_came_since_the_last_look(brokers: KafkaSettings, topic: str, producer: Producer) -> None:
    tail = SinkTail(brokers)
    tail.look([topic])

    producer.produce(topic, encoded(), partition=0, timestamp=COMMITTED_S * 1000 + 250)
    header: dict[str, str | bytes | None] = {TOMBSTONE_HEADER: encoded()}
    producer.produce(topic, None, b"deleted", partition=1, timestamp=COMMITTED_S * 1000 + 500, headers=header)
    producer.flush()
    written, lags = tail.look([topic])

    assert written == {topic: 2}
    assert sorted(lags[topic]) == pytest.approx([0.25, 0.5])
    assert tail.look([topic]) == ({topic: 0}, {topic: []})
    tail.close()


def test_it_reads_the_newest_records_only(brokers: KafkaSettings, topic: str, producer: Producer) -> None:
    tail = SinkTail(brokers)
    tail.look([topic])
    for number in range(3 * MAX_SAMPLE):
        producer.produce(topic, encoded(), partition=0, timestamp=COMMITTED_S * 1000 + number * 1000)
    producer.flush()
    written, lags = tail.look([topic])

    assert written == {topic: 3 * MAX_SAMPLE}
    assert sorted(lags[topic]) == list(range(2 * MAX_SAMPLE, 3 * MAX_SAMPLE))
    tail.close()


def test_what_is_no_state_record_has_no_lag(brokers: KafkaSettings, topic: str, producer: Producer) -> None:
    tail = SinkTail(brokers)
    tail.look([topic])
    for value in (b"\xff", StateRecord(epoch=1).SerializeToString(), None):
        producer.produce(topic, value, partition=0, timestamp=int(time.time() * 1000))
    producer.flush()

    assert tail.look([topic]) == ({topic: 3}, {topic: []})
    tail.close()


def test_it_sums_over_all_queries(metrics: Metrics, plans: list[QueryPlan]) -> None:
    output = Output(FakeTail(({"keyed": 1200}, {"keyed": [0.045, 0.12]})).look, metrics)
    output.look(plans[:1])
    queries = [Mock(input_rate=500, state_rows=1000, checkpointed_at=at) for at in (100.0, 104.0)]

    line = summary(output, queries, letters=2, waiting=0, now=112.0)

    assert line == (
        "in 1,000/s · out 1,200/s · lag p50 45 ms, p99 120 ms · state 2,000 rows · checkpoint 12 s ago · dead letters 2"
    )
    assert summary(output, queries, letters=2, waiting=3, now=112.0).endswith("3 records wait behind open transactions")


def test_before_anything_is_known_it_says_so(metrics: Metrics) -> None:
    output = Output(FakeTail(({}, {})).look, metrics)

    line = summary(output, [], letters=0, waiting=0, now=1.0)

    assert "lag p50 unknown" in line
    assert "no checkpoint yet" in line


def test_a_header_whose_name_is_no_text_ends_nothing() -> None:
    unreadable = Mock(
        **{"value.return_value": None, "headers.side_effect": SystemError, "timestamp.return_value": (1, 0)}
    )

    assert lag_of(unreadable) is None
