"""The real program on a real broker, in real-time mode."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.steps.dead_letters import OFFSET, PIPELINES, REASON
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_customer, by_item, by_order, model, wait_for_state
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

NEWER_FIELD = b"\xa2\x06\x03new"
"""A field of number 100 that the contract does not know, with three bytes of text."""


@pytest.fixture
def prefix() -> str:
    return f"{uuid4().hex[:8]}."


def test_changes_become_keyed_records_and_poison_becomes_dead_letters(
    kafka: str, prefix: str, create_topics: Callable[[str], None], start_processor: ProcessorOf
) -> None:
    processor = start_processor(prefix)
    processor.start()
    wait_until(lambda: f"no topic {prefix}orders" in processor.get("/readyz")[1], lambda: processor.log)
    assert processor.get("/healthz")[0] == 200

    create_topics(prefix)
    processor.wait_ready()
    changes = [
        change(None, order(items=["item-1", "item-2"]), 1),
        change(None, order("order-2"), 2),
        change(order(items=["item-1", "item-2"]), order(customer="customer-2", items=["item-2"], second=3), 3),
        change(order("order-2"), None, 4),
    ]
    changes[2].after.MergeFromString(NEWER_FIELD)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(f"{prefix}orders", key=b"order-1", value=b"\xff", partition=0)
    for each in changes:
        producer.produce(f"{prefix}orders", key=b"any", value=each.SerializeToString(), partition=1)
    producer.flush()

    for name, keys in (("orders-by-key", by_order), ("orders-by-customer", by_customer), ("orders-by-item", by_item)):
        wait_for_state(partial(read_topic, kafka, prefix + name), model(changes, keys), processor)
    moved = [each.value for each in read_topic(kafka, f"{prefix}orders-by-key") if each.key == b"order-1"]
    assert StateRecord.FromString(moved[-1] or b"").payload.endswith(NEWER_FIELD)
    wait_until(lambda: len(read_topic(kafka, f"{prefix}orders.dead-letter")) == 3, lambda: processor.log)
    letters = read_topic(kafka, f"{prefix}orders.dead-letter")
    assert {(each.key, each.value, each.headers[OFFSET]) for each in letters} == {(b"order-1", b"\xff", b"0")}
    assert {each.headers[PIPELINES] for each in letters} == {b"orders-by-customer", b"orders-by-item", b"orders-by-key"}
    assert all(each.headers[REASON].startswith(b"not a statecast.orders.v1.OrderChange") for each in letters)
    assert 'stream_processor_running_tasks{query="orders-by-item"} 1.0' in processor.get("/metrics")[1]
    wait_until(lambda: "_dead_letters{" in processor.get("/metrics")[1], lambda: processor.get("/metrics")[1])
    assert processor.stop() == 0


def test_too_many_dead_letters_stop_it_until_they_are_accepted(
    kafka: str, prefix: str, create_topics: Callable[[str], None], start_processor: ProcessorOf
) -> None:
    create_topics(prefix)
    replaced = {"dead_letters": {"limit": 1}, "trigger": {"mode": "micro-batch", "interval": "500ms"}}
    processor = start_processor(prefix, replaced)
    processor.start_ready()
    producer = Producer({"bootstrap.servers": kafka})
    for _ in range(2):
        producer.produce(f"{prefix}orders", value=None)
    producer.flush()

    assert processor.wait_end() == 1
    assert f"stream-processor: 2 dead letters on {prefix}orders.dead-letter, the limit is 1" in processor.log
    assert "Traceback" not in processor.log

    starts = processor.log.count("starting Spark")
    processor.start()

    assert processor.wait_end() == 1
    assert processor.log.count("starting Spark") == starts
