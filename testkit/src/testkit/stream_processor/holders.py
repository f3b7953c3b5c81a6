"""A pipeline in real-time mode that sums the positions of each client, through restarts, kills and truncations."""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer

from testkit.stream_processor.process import Processor, wait_until
from testkit.stream_processor.truncated_positions import POSITIONS, Event, Held, Row, encoded, held, of_rows
from testkit.topics import create_topic, read_topic


class Holders:
    """An aggregate of positions on topics of its own with two partitions, computed by one process after the other."""

    def __init__(self, kafka: str, processor_of: Callable[..., Processor]) -> None:
        self.name, self._kafka, self._of = f"holders-{uuid4().hex[:8]}", kafka, processor_of
        self._source = f"{self.name}-positions"
        for topic in (self._source, f"{self._source}.dead-letter", self.name):
            create_topic(kafka, topic, partitions=2)

    def started(self, **keys: Any) -> Processor:
        """Starts a process with exactly the task slots that it needs, and with these keys in the pipeline's file."""
        content = {
            "name": self.name,
            "source": {**POSITIONS, "topic": self._source},
            "group_by": "client",
            "keep": {"aggregate": {"positions": "count(*)", "shares": "sum(amount)"}},
            "sink": {"topic": self.name, "message": "statecast.portfolio.v1.ShareHolder"},
            **keys,
        }
        processor = self._of(content, checkpoint_interval="5s", spare_slots="0")
        processor.start_ready()
        return processor

    def send(self, partition: int, *events: Event) -> None:
        """Sends changes to a partition of the source."""
        producer = Producer({"bootstrap.servers": self._kafka})
        for value in encoded(events):
            producer.produce(self._source, value=value, partition=partition)
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
