"""A real-time pipeline without `parallelism` runs in one task slot, unless its state has parts already (ADR 0068)."""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from testkit.stream_processor.process import Processor, wait_until
from testkit.stream_processor.truncated_positions import (
    POSITIONS,
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

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

PARTITIONS = 2
TWO_READERS_AND_TWICE_TWO_PARTS = 6.0


class Holders:
    """An aggregate of positions on topics of its own, which one process after the other computes."""

    def __init__(self, kafka: str, processor_of: Callable[..., Processor]) -> None:
        self.name, self._kafka, self._of = f"holders-{uuid4().hex[:8]}", kafka, processor_of
        self._source = f"{self.name}-positions"
        for topic in (self._source, f"{self._source}.dead-letter", self.name):
            create_topic(kafka, topic, partitions=PARTITIONS)

    def started(self, **keys: Any) -> Processor:
        """Starts a process with exactly the task slots that it needs."""
        content = {
            "name": self.name,
            "source": {**POSITIONS, "topic": self._source},
            "group_by": "client",
            "keep": {"aggregate": {"positions": "count(*)", "shares": "sum(amount)"}},
            "sink": {"topic": self.name, "message": "statecast.portfolio.v1.ShareHolder"},
            **keys,
        }
        processor = self._of(content, checkpoint_interval="5s", spare_slots="0")
        processor.start()
        processor.wait_ready()
        return processor

    def send(self, *events: Any) -> None:
        """Sends each change to the partition of its position, and a TRUNCATE to the first."""
        producer = Producer({"bootstrap.servers": self._kafka})
        for each, value in zip(events, encoded(events), strict=True):
            row = each["after"] or each["before"]
            producer.produce(self._source, value=value, partition=ord(row["position_id"]) % PARTITIONS if row else 0)
        producer.flush()

    def wait_for(self, processor: Processor, rows: Iterable[Row]) -> None:
        """Returns when the topic has the sums of these rows."""
        wanted = of_rows(rows, "aggregate")
        wait_until(lambda: self._sums() == wanted, lambda: f"{self._sums()} is not {wanted}: {processor.log[-3000:]}")

    def wait_tasks(self, processor: Processor, count: float) -> None:
        """Returns when the pipeline has so many running tasks, by the metrics: between two batches it has none."""
        metric = f'stream_processor_running_tasks{{query="{self.name}"}} {count}\n'
        wait_until(lambda: metric in processor.get("/metrics")[1], lambda: processor.get("/metrics")[1])

    def _sums(self) -> Held:
        return held(read_topic(self._kafka, self.name), "aggregate")


def test_an_aggregate_runs_in_one_slot_and_is_exact_through_a_kill_and_a_truncation(
    kafka: str, processor_of: Callable[..., Processor]
) -> None:
    holders = Holders(kafka, processor_of)
    processor = holders.started()
    holders.send(created(8, "p"), created(16, "q", "b"), created(24, "r", "a", 3))
    holders.wait_for(processor, [position("p"), position("q", "b"), position("r", "a", 3)])
    holders.wait_tasks(processor, 1.0)

    processor.kill()
    holders.send(event("u", 32, after=position("r", "b", 2)), created(40, "s"))
    processor = holders.started()
    holders.wait_for(processor, [position("p"), position("q", "b"), position("r", "b", 2), position("s")])

    holders.send(truncated(48), created(56, "s", "b", 7))
    holders.wait_for(processor, [position("s", "b", 7)])
    assert processor.stop() == 0


def test_a_state_with_two_parts_goes_on_with_them(kafka: str, processor_of: Callable[..., Processor]) -> None:
    holders = Holders(kafka, processor_of)
    processor = holders.started(parallelism=2)
    holders.send(created(8, "p"), created(16, "q", "b"))
    holders.wait_for(processor, [position("p"), position("q", "b")])
    assert processor.stop() == 0

    processor = holders.started()
    holders.send(event("u", 24, after=position("q", "a", 4)))
    holders.wait_for(processor, [position("p"), position("q", "a", 4)])
    holders.wait_tasks(processor, TWO_READERS_AND_TWICE_TWO_PARTS)
    assert processor.stop() == 0
