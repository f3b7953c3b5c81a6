"""Kills in the middle of a flow: nothing is lost, nothing counts twice, and no row goes back to an older version."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
import yaml
from confluent_kafka import Producer

from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderItem
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.model import by_customer, by_item, by_order, model, read_fenced, wait_for_state
from testkit.stream_processor.process import Processor, ProcessorOf, wait_until
from testkit.topics import count_records, read_checkpointed, read_topic

CHANGES = 6_000
PARTS = 3
SUMS = "earned-by-item"
KEYS = {"orders-by-key": by_order, "orders-by-customer": by_customer, "orders-by-item": by_item}

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


def history(seed: int) -> Iterator[OrderChange]:
    """Changes of 300 orders with moves between customers and items, deletes and re-creations."""
    chance = random.Random(seed)
    rows: dict[str, Order] = {}
    for sequence in range(1, CHANGES + 1):
        order_id = f"order-{chance.randrange(300)}"
        before = rows.pop(order_id, None)
        if before is None or chance.random() > 0.1:
            items = {f"item-{chance.randrange(40)}" for _ in range(chance.randint(1, 3))}
            rows[order_id] = order(order_id, f"customer-{chance.randrange(20)}", sorted(items), second=sequence / 1000)
        yield change(before, rows.get(order_id), sequence)


class Source:
    """Sends changes, and sometimes repeats an earlier one, as a connector does."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
        self._topic = topic
        self._sent: list[OrderChange] = []
        self._chance = random.Random(2)

    def send(self, changes: list[OrderChange]) -> None:
        for each in changes:
            self._send(each)
            if self._chance.random() < 0.1:
                self._send(self._chance.choice(self._sent[-500:]))
        self._producer.flush()

    def _send(self, each: OrderChange) -> None:
        self._sent.append(each)
        row = each.after if each.HasField("after") else each.before
        self._producer.produce(self._topic, key=row.order_id.encode(), value=each.SerializeToString())
        self._producer.poll(0.001)


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """The file of an aggregate over a repeated path, beside the shapes that ship."""
    file = tmp_path / "made" / f"{SUMS}.yaml"
    file.parent.mkdir()
    source = {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "key": "order_id"}
    number = {"unit_price_cents": "sum(element.quantity * element.unit_price_cents)"}
    sink = {"topic": SUMS, "message": "statecast.orders.v1.OrderItem"}
    content = {"name": SUMS, "source": source, "group_by": "items.item_id", "keep": {"aggregate": number}, "sink": sink}
    file.write_text(yaml.safe_dump(content))
    return file


def test_kills_of_driver_and_jvm_lose_nothing(
    kafka: str, create_topics: Callable[..., None], start_processor: ProcessorOf, sums: Path
) -> None:
    prefix = f"{uuid4().hex[:8]}."
    create_topics(prefix, SUMS)
    processor = start_processor(prefix, more=[sums], checkpoint_interval="5s")
    changes = list(history(seed=1))
    source = Source(kafka, f"{prefix}orders")
    processor.start()

    for part in range(PARTS):
        flow = Thread(target=source.send, args=(changes[part * CHANGES // PARTS : (part + 1) * CHANGES // PARTS],))
        processor.wait_ready()
        flow.start()
        wait_until(lambda: checkpoints(processor) > len(KEYS), lambda: processor.get("/metrics")[1])
        if part < PARTS - 1:
            processor.kill()
        else:
            processor.jvm().kill()
            assert processor.wait_end() == 1
            assert "stream-processor: Spark's JVM has ended" in processor.log
        processor.start()
        flow.join()

    for name, keys in KEYS.items():
        wait_for_state(partial(read_topic, kafka, prefix + name), model(changes, keys), processor)
    wanted = totals(changes)
    read_sums = partial(read_totals, kafka, prefix + SUMS)
    wait_until(lambda: read_sums() == wanted, lambda: f"{read_sums()} is not {wanted}")
    for topic in (prefix + name for name in (*KEYS, SUMS)):
        counts = partial(read_checkpointed, kafka, topic), partial(count_records, kafka, topic)
        wait_until(lambda: counts[0]() == counts[1](), lambda: f"{topic}: {counts[0]()} of {counts[1]()}")  # noqa: B023
    assert processor.stop() == 0


def totals(changes: list[OrderChange]) -> dict[str, int]:
    """Returns the earnings of each item over all orders that exist at the end."""
    earned: dict[str, int] = {}
    for _, row in model(changes, by_order).values():
        for item in row.items:
            earned[item.item_id] = earned.get(item.item_id, 0) + item.quantity * item.unit_price_cents
    return earned


def read_totals(bootstrap: str, topic: str) -> dict[str, int]:
    """Returns the sums as read by a consumer that applies the fence."""
    held = read_fenced(read_topic(bootstrap, topic))
    return {key: OrderItem.FromString(state.payload).unit_price_cents for key, state in held.items()}


def checkpoints(processor: Processor) -> int:
    """Returns how many pipelines have made a checkpoint in this run."""
    lines = processor.get("/metrics")[1].splitlines()
    return sum(line.startswith("stream_processor_checkpoints_total") for line in lines)
