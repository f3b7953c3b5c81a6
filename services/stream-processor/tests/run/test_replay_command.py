"""Debezium's JSON in real-time mode, and dead letters that are replayed after their cause is fixed."""

from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from stream_processor.steps.dead_letters import OFFSET, REASON, TRUNCATED
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.debezium import debezium
from testkit.stream_processor.model import by_order, model, wait_for_state
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import configure_topic, create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

LARGE = {"max.message.bytes": "8000000"}


@pytest.fixture
def prefix(kafka: str) -> str:
    """The prefix of three topics; the keyed one does not take large records."""
    prefix = f"{uuid4().hex[:8]}."
    create_topic(kafka, f"{prefix}orders", 2, LARGE)
    create_topic(kafka, f"{prefix}orders.dead-letter", 1, {"max.message.bytes": "6000000"})
    create_topic(kafka, f"{prefix}orders-by-key", 2)
    return prefix


@pytest.fixture
def processor(processor_of: ProcessorOf, prefix: str) -> Processor:
    content = {
        "name": "orders-by-key",
        "source": {
            "topic": f"{prefix}orders",
            "message": "statecast.orders.v1.OrderChange",
            "format": "debezium-json",
            "epoch": 1,
        },
        "group_by": "order_id",
        "keep": "latest",
        "sink": {"topic": f"{prefix}orders-by-key"},
        "trigger": {"mode": "realtime", "checkpoint": "5s"},
    }
    return processor_of(content, driver_memory="2g")  # records of 5 and 7 MB together can fill 1 GB


def test_a_row_that_was_too_large_is_put_back_when_its_topic_takes_it(
    kafka: str, prefix: str, processor: Processor
) -> None:
    source, letters, keyed = (f"{prefix}{name}" for name in ("orders", "orders.dead-letter", "orders-by-key"))
    processor.start_ready()
    large = order("large")
    large.tracking_number = "x" * 5_000_000
    small = [
        change(None, order("a"), 1),
        change(None, order("b"), 2),
        change(order("b"), None, 3),
        change(order("a"), order("a", customer="customer-2", second=2), 5),
    ]
    producer = Producer({"bootstrap.servers": kafka, "message.max.bytes": 10_000_000})
    for each in [*small, change(None, large, 4)]:
        producer.produce(source, debezium(each), b"any", 0)
    producer.produce(source, None, b"b", 0)
    producer.produce(source, b"[" * 7_000_000, b"any", 1, headers=[("trace", b"1")])
    producer.flush()

    wait_for_state(partial(read_topic, kafka, keyed), model(small, by_order), processor)
    wait_until(lambda: len(read_topic(kafka, letters)) == 2, lambda: processor.log)
    by_length = {len(letter.value or b""): letter for letter in read_topic(kafka, letters)}
    whole = by_length.pop(len(debezium(change(None, large, 4))))
    [cut] = by_length.values()
    assert whole.headers[REASON].endswith(b"(max.message.bytes)")
    assert (cut.headers[TRUNCATED], cut.headers["trace"], cut.headers[OFFSET]) == (b"7000000", b"1", b"0")

    assert processor.stop() == 0
    configure_topic(kafka, keyed, "max.message.bytes", "8000000")
    processor.start_ready()
    assert '"replayed": 1' in processor.run_command("replay-dead-letters", "--reason", "max.message.bytes", "--dry-run")
    output = processor.run_command("replay-dead-letters", "--reason", "max.message.bytes")
    assert '"replayed": 1' in output
    assert "a part of the record is missing" in output

    wait_for_state(partial(read_topic, kafka, keyed), model([*small, change(None, large, 4)], by_order), processor)
    assert '"replayed": 0' in processor.run_command("replay-dead-letters")
    wait_until(lambda: counted(processor) == "0.0", lambda: processor.get("/metrics")[1])
    assert processor.stop() == 0


def counted(processor: Processor) -> str:
    """Returns the dead letters that count against the limit."""
    lines = processor.get("/metrics")[1].splitlines()
    return next((line.split()[-1] for line in lines if line.startswith("stream_processor_dead_letters{")), "")
