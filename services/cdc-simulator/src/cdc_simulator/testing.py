"""Fakes for unit tests; nothing else imports them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from cdc_simulator.order_row import OrderRow
from cdc_simulator.workload import Insert, Mutation, Update


class ManualClock:
    """Stands still until it is moved, or somebody sleeps."""

    def __init__(self, now_us: int = 1_724_848_496_123_456) -> None:
        self.time_us = now_us

    def now_us(self) -> int:
        """As Clock has it."""
        return self.time_us

    def monotonic_s(self) -> float:
        """As Clock has it."""
        return self.time_us / 1e6

    def sleep(self, seconds: float) -> None:
        """Moves the time on."""
        self.time_us += int(seconds * 1e6)


class MemoryTable:
    """A table for the workload, without a database."""

    def __init__(self, rows: Iterable[OrderRow], next_number: int) -> None:
        self.rows = {row.number: row for row in rows}
        self._numbers = sorted(self.rows)
        self.next_number = next_number

    def __len__(self) -> int:
        return len(self._numbers)

    def nth(self, index: int) -> OrderRow:
        """As Table has it."""
        return self.rows[self._numbers[index]]

    def apply(self, mutation: Mutation) -> None:
        """Makes one change."""
        if isinstance(mutation, (Insert, Update)):
            self.rows[mutation.after.number] = mutation.after
        else:
            del self.rows[mutation.before.number]
            del self._numbers[bisect_left(self._numbers, mutation.before.number)]
        if isinstance(mutation, Insert):
            self._numbers.append(mutation.after.number)
            self.next_number += 1


class MemoryProducer:
    """Takes records, and delivers them when it is polled and `away` is off."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.configuration = configuration
        self.records: list[tuple[str, bytes, bytes]] = []
        self.away = False
        self.refusal: KafkaError | None = None
        self.topics: dict[str, object] | None = {}
        self._undelivered: list[Callable[..., None]] = []

    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[..., None]) -> None:
        """As Producer has it."""
        self.records.append((topic, value, key))
        self._undelivered.append(on_delivery)

    def poll(self, timeout: float) -> int:  # noqa: ARG002  as Producer has it
        """As Producer has it; the newest record is delivered first, as partitions would."""
        while self._undelivered and not self.away:
            self._undelivered.pop()(self.refusal, None)
        return 0

    def list_topics(self, *, timeout: float) -> Any:  # noqa: ARG002  as above
        """As Producer has it; no topics at all stands for no broker."""
        if self.topics is None:
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        return self
