"""Records that pipelines of each shape cannot use are set aside in real-time mode, and again after a kill."""

from collections import Counter
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from stream_processor.steps.dead_letters import OFFSET, PIPELINES
from testkit.stream_processor.changes import invoice
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

SHAPES = ("invoices-by-store", "rewards-by-customer", "home-delivery", "masked-lines")
"""Members, an aggregate, a route, and a route that explodes rows."""


def test_each_pipeline_sets_aside_what_it_cannot_use(kafka: str, start_processor: ProcessorOf) -> None:
    prefix = f"{uuid4().hex[:8]}."
    for topic in ("invoices", *SHAPES):
        create_topic(kafka, prefix + topic, 2)
    create_topic(kafka, f"{prefix}invoices.dead-letter", 1)
    processor = start_processor(prefix, named=[f"invoices/{name}" for name in SHAPES], checkpoint_interval="5s")
    producer = Producer({"bootstrap.servers": kafka})

    def send(*values: bytes) -> None:
        for value in values:
            producer.produce(f"{prefix}invoices", value=value, key=b"store-1", partition=1)
        producer.flush()

    def letters(offset: int) -> Counter[str]:
        """Returns how many letters of the record each pipeline has written."""
        written = [each.headers for each in read_topic(kafka, f"{prefix}invoices.dead-letter")]
        return Counter(each[PIPELINES].decode() for each in written if each[OFFSET] == str(offset).encode())

    def set_aside() -> list[float]:
        total = "stream_processor_records_total"
        return [processor.metric(total, pipeline=name, outcome="set_aside") for name in SHAPES]

    send(b"\xff", invoice("first").SerializeToString())
    processor.start_ready()
    wait_until(lambda: letters(0) == Counter(SHAPES), processor.log_tail)
    wait_until(lambda: set_aside() == [1] * len(SHAPES), processor.log_tail)
    assert all(read_topic(kafka, prefix + name) for name in SHAPES)

    send(b"\xfe")
    wait_until(lambda: letters(2).keys() == set(SHAPES), processor.log_tail)
    processor.kill()
    send(b"\xfd")
    processor.start_ready()

    wait_until(lambda: letters(3) == Counter(SHAPES), processor.log_tail)
    assert letters(0) == Counter(SHAPES)
    assert processor.stop() == 0
