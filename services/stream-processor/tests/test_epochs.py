"""Readers take sums after a lost checkpoint, with any earlier epochs and clocks."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import OrderItem
from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import read_fenced
from testkit.stream_processor.process import Processor, wait_until
from testkit.topics import create_topic, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

FUTURE = 2**50
"""An epoch that no clock gives in the next 30,000 years."""


@pytest.fixture
def prefix(kafka: str) -> str:
    prefix = f"{uuid4().hex[:8]}."
    for name in ("orders", "orders.dead-letter", "sold"):
        create_topic(kafka, prefix + name, 2)
    return prefix


@pytest.fixture
def processor(processor_of: Callable[[Mapping[str, Any]], Processor], prefix: str) -> Processor:
    source = {"topic": f"{prefix}orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"}
    content = {
        "name": "sold",
        "source": source,
        "group_by": "items.item_id",
        "keep": {"aggregate": {"unit_price_cents": "sum(element.quantity)"}},
        "sink": {"topic": f"{prefix}sold", "message": "statecast.orders.v1.OrderItem"},
        "trigger": {"mode": "realtime", "checkpoint": "5s"},
    }
    return processor_of(content)


def test_a_lost_checkpoint_starts_an_epoch_that_readers_take(
    kafka: str, prefix: str, processor: Processor, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    stale = StateRecord(epoch=FUTURE, sequence=1_000, payload=OrderItem(unit_price_cents=77).SerializeToString())
    producer.produce(f"{prefix}sold", stale.SerializeToString(), b"item-1", 0)
    for number in range(1, 4):
        producer.produce(f"{prefix}orders", change(None, order(f"order-{number}"), number).SerializeToString())
    producer.flush()

    def sold() -> tuple[int, int]:
        held = read_fenced(read_topic(kafka, f"{prefix}sold"))["item-1"]
        return held.epoch, OrderItem.FromString(held.payload).unit_price_cents

    processor.start()
    wait_until(lambda: sold() == (FUTURE + 1, 3), lambda: f"{sold()}: {processor.log}")
    assert processor.stop() == 0
    backup = tmp_path / "backup"
    (tmp_path / "checkpoints").rename(backup)
    processor.start()
    wait_until(lambda: sold() == (FUTURE + 2, 3), lambda: f"{sold()}: {processor.log}")
    assert processor.stop() == 0

    shutil.rmtree(tmp_path / "checkpoints")
    backup.rename(tmp_path / "checkpoints")
    processor.start()

    assert processor.wait_end() == 2
    assert f"has sums of a later checkpoint (epoch {FUTURE + 2})" in processor.log
