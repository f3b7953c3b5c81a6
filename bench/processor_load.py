"""Sends serialized changes at a steady rate, and knows when each was sent."""

import time
from array import array
from collections.abc import Sequence

from confluent_kafka import Producer

from bench.processor_workload import Sent

PAUSE_S = 0.002
LEAST_SHARE = 0.95
"""Of the rate asked for; a sender that falls behind measures itself."""


class Load:
    """Sends the changes in their order, some at a time."""

    def __init__(self, bootstrap: str, topic: str, changes: Sequence[Sent]) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "linger.ms": 1,
                "queue.buffering.max.messages": 2_000_000,
                "queue.buffering.max.kbytes": 2_000_000,
            }
        )
        self._topic = topic
        self._changes = changes
        self.sent_ms = array("d")
        """When each change was handed to the producer, by its index; in milliseconds since 1970."""

    def send_at(self, rate: int, seconds: float) -> None:
        """Sends `rate` changes a second for so long. Raises RuntimeError when it falls behind or has no more."""
        first, started = len(self.sent_ms), time.monotonic()
        total = round(rate * seconds)
        while (done := len(self.sent_ms) - first) < total:
            elapsed = time.monotonic() - started
            self._send(min(round(elapsed * rate), total) - done)
            self._producer.poll(0)
            time.sleep(PAUSE_S)
        reached = total / (time.monotonic() - started)
        if reached < rate * LEAST_SHARE:
            raise RuntimeError(f"the load reached {reached:.0f} of {rate} changes/s: is the machine busy?")

    def send_all(self, count: int) -> None:
        """Sends so many changes as fast as it can, and waits until Kafka has them."""
        self._send(count)
        self._producer.flush()

    def _send(self, count: int) -> None:
        first = len(self.sent_ms)
        if first + count > len(self._changes):
            raise RuntimeError(f"{len(self._changes)} changes were made, {first + count} are needed")
        for key, value in self._changes[first : first + count]:
            self.sent_ms.append(time.time() * 1000)
            self._producer.produce(self._topic, key=key, value=value)
