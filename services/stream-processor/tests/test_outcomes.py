"""Every record that a real pipeline reads in real-time mode is counted once, by how it has ended."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import OrderChange
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.process import Processor, wait_until
from testkit.stream_processor.truncated_positions import POSITIONS, Event, created, encoded, read_by_snapshot
from testkit.topics import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]


def later(each: OrderChange) -> OrderChange:
    each.source.commit_time.FromDatetime(each.source.commit_time.ToDatetime() + timedelta(hours=1))
    return each


def test_each_record_ends_in_one_way_and_a_log_that_runs_backwards_is_told(
    kafka: str, processor_of: Callable[[Mapping[str, Any]], Processor]
) -> None:
    name = f"orders-{uuid4().hex[:8]}"
    for topic in (name, f"{name}.dead-letter", f"{name}-by-key"):
        create_topic(kafka, topic, 1)
    processor = processor_of(
        {
            "name": name,
            "source": {"topic": name, "message": "statecast.orders.v1.OrderChange"},
            "where": "currency = 'EUR'",
            "group_by": "order_id",
            "keep": "latest",
            "sink": {"topic": f"{name}-by-key"},
            "trigger": {"mode": "realtime", "checkpoint": "5s"},
        }
    )
    other = order("other")
    other.currency = "USD"
    sent: list[OrderChange | bytes | None] = [
        change(None, order(), 8_000_000),
        change(None, order(), 8_000_000),
        change(None, order(), 7_000_000),
        *[later(change(None, order(), place)) for place in range(1, 101)],
        change(None, other, 8),
        None,
        b"\xff",
    ]
    producer = Producer({"bootstrap.servers": kafka})
    for each in sent:
        value = each.SerializeToString() if isinstance(each, OrderChange) else each
        producer.produce(name, value=value, key=b"key")
    producer.flush()

    def outcomes() -> dict[str, float]:
        names = ("applied", "filtered", "duplicate", "superseded", "superseded_newer", "set_aside", "passed_over")
        return {each: processor.metric("stream_processor_records_total", pipeline=name, outcome=each) for each in names}

    processor.start_ready()
    wait_until(lambda: sum(outcomes().values()) >= len(sent), lambda: f"{outcomes()}: {processor.log_tail()}")

    assert list(outcomes().values()) == [1, 1, 1, 1, 100, 1, 1]
    assert processor.log.count("raise source.epoch") == 1
    assert processor.stop() == 0


@pytest.mark.long
def test_a_snapshot_that_comes_to_rows_from_before_is_told_once(
    kafka: str, processor_of: Callable[[Mapping[str, Any]], Processor]
) -> None:
    name = f"positions-{uuid4().hex[:8]}"
    for topic in (name, f"{name}.dead-letter", f"{name}-by-key"):
        create_topic(kafka, topic, 1)
    processor = processor_of(
        {
            "name": name,
            "source": {**POSITIONS, "topic": name},
            "group_by": "position_id",
            "keep": "latest",
            "sink": {"topic": f"{name}-by-key"},
            "trigger": {"mode": "realtime", "checkpoint": "5s"},
        }
    )
    producer = Producer({"bootstrap.servers": kafka})

    def send(*events: Event) -> None:
        for value in encoded(events):
            producer.produce(name, value=value)
        producer.flush()

    def counted(outcome: str) -> float:
        return processor.metric("stream_processor_records_total", pipeline=name, outcome=outcome)

    def read_again() -> float:
        return processor.metric("stream_processor_snapshot_rows_total", pipeline=name)

    processor.start_ready()
    send(read_by_snapshot(8, "700"), created(16, "701"), created(24, "702"))
    wait_until(lambda: counted("applied") == 3, processor.log_tail)
    assert read_again() == 0
    assert processor.stop() == 0
    processor.start_ready()
    send(read_by_snapshot(800, "701"))
    wait_until(lambda: read_again() == 1, processor.log_tail)

    assert processor.log.count("a snapshot reads rows") == 1
    assert processor.stop() == 0
