"""Fakes for unit tests; nothing else imports them."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from cdc_simulator.basis import Basis
from cdc_simulator.domain import Domain
from cdc_simulator.mutation import Delete, Insert, Mutation, Row


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


class MemoryRows:
    """The rows of one table for a workload, without a database."""

    def __init__(self, rows: Iterable[Row] = (), next_number: int = 1) -> None:
        self.rows = {row.number: row for row in rows}
        self._numbers = sorted(self.rows)
        self.next_number = max([next_number, *(number + 1 for number in self._numbers)])

    def __len__(self) -> int:
        return len(self._numbers)

    def nth(self, index: int) -> Row:
        """As Rows has it."""
        return self.rows[self._numbers[index]]

    def find(self, number: int) -> Row | None:
        """As Rows has it."""
        return self.rows.get(number)

    def apply(self, mutation: Mutation) -> None:
        """Makes one change."""
        if isinstance(mutation, Delete):
            del self.rows[mutation.before.number]
            del self._numbers[bisect_left(self._numbers, mutation.before.number)]
            return
        self.rows[mutation.after.number] = mutation.after
        if isinstance(mutation, Insert):
            insort(self._numbers, mutation.after.number)
            self.next_number = max(self.next_number, mutation.after.number + 1)


def memory_tables(domain: Domain, basis: Basis, now_us: int) -> dict[str, MemoryRows]:
    """Returns the tables of a domain with their initial rows."""
    tables = {table.name: MemoryRows() for table in domain.tables}
    for insert in domain.initial_rows(basis, now_us):
        tables[insert.table].apply(insert)
    return tables


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
