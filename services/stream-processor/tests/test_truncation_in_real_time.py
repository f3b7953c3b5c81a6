"""TRUNCATE in real-time mode, with a kill around it, and partitions of the topic that are read in any order."""

from collections.abc import Callable, Iterable
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from testkit.stream_processor.process import Processor, wait_until
from testkit.stream_processor.truncated_positions import (
    POSITIONS,
    Event,
    Held,
    Row,
    created,
    encoded,
    event,
    held,
    of_rows,
    position,
    truncated,
)
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


def test_a_truncation_and_a_kill_leave_exact_sums(kafka: str, processor_of: Callable[..., Processor]) -> None:
    name = f"holders-{uuid4().hex[:8]}"
    source = f"{name}-positions"
    for topic in (source, f"{source}.dead-letter", name):
        create_topic(kafka, topic, partitions=2)
    content = {
        "name": name,
        "source": {**POSITIONS, "topic": source},
        "group_by": "client",
        "keep": {"aggregate": {"positions": "count(*)", "shares": "sum(amount)"}},
        "sink": {"topic": name, "message": "statecast.portfolio.v1.ShareHolder"},
    }
    processor = processor_of(content, checkpoint_interval="5s")

    def send(partition: int, *events: Event) -> None:
        producer = Producer({"bootstrap.servers": kafka})
        for value in encoded(events):
            producer.produce(source, value=value, partition=partition)
        producer.flush()

    def sums() -> Held:
        return held(read_topic(kafka, name), "aggregate")

    def wait_for(rows: Iterable[Row]) -> None:
        wanted = of_rows(rows, "aggregate")
        wait_until(lambda: sums() == wanted, lambda: f"{sums()} is not {wanted}: {processor.log[-3000:]}")

    processor.start()
    processor.wait_ready()
    send(0, created(8, "p"), created(16, "q", "b"))
    send(1, created(24, "r", "a", 3))
    wait_for([position("p"), position("q", "b"), position("r", "a", 3)])

    send(1, truncated(40), created(48, "s", "b", 7))
    wait_for([position("s", "b", 7)])
    send(0, event("u", 32, after=position("q", "c")), created(56, "p", "a", 2))
    wait_for([position("s", "b", 7), position("p", "a", 2)])

    processor.kill()
    send(0, truncated(72))
    send(1, event("u", 64, after=position("s", "a", 8)), created(80, "r"))
    processor.start()
    processor.wait_ready()
    wait_for([position("r")])
    send(0, created(88, "p", "b", 5))
    send(1, event("u", 96, after=position("r", "c")))
    wait_for([position("p", "b", 5), position("r", "c")])
    assert processor.stop() == 0
