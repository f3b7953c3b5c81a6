"""Fakes for unit tests; nothing else imports them."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from typing_extensions import override

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, Rows
from cdc_simulator.pacing import Clock
from cdc_simulator.publisher import Producer
from cdc_simulator.source_table import Row


class ManualClock(Clock):
    """Stands still until it is moved, or somebody sleeps."""

    def __init__(self, now_us: int = 1_724_848_496_123_456) -> None:
        self.time_us = now_us

    @override
    def now_us(self) -> int:
        return self.time_us

    @override
    def monotonic_s(self) -> float:
        return self.time_us / 1e6

    @override
    def sleep(self, seconds: float) -> None:
        self.time_us += int(seconds * 1e6)


class MemoryRows(Rows):
    """The rows of one table for a workload, without a database."""

    def __init__(self, rows: Iterable[Row] = (), next_number: int = 1) -> None:
        self.rows = {row.number: row for row in rows}
        self._numbers = sorted(self.rows)
        self.next_number = max([next_number, *(number + 1 for number in self._numbers)])

    @override
    def __len__(self) -> int:
        return len(self._numbers)

    @override
    def nth(self, index: int) -> Row:
        return self.rows[self._numbers[index]]

    @override
    def find(self, number: int) -> Row | None:
        return self.rows.get(number)

    def apply(self, mutation: Mutation) -> None:
        """Makes one change."""
        before, after = mutation.before, mutation.after
        if after is None:
            del self.rows[before.number]
            del self._numbers[bisect_left(self._numbers, before.number)]
            return
        self.rows[after.number] = after
        if before is None:
            insort(self._numbers, after.number)
            self.next_number = max(self.next_number, after.number + 1)


def memory_tables(domain: Domain, parameters: DatabaseParameters, now_us: int) -> dict[str, MemoryRows]:
    """Returns the tables of a domain with their initial rows."""
    tables = {table.name: MemoryRows() for table in domain.tables}
    for insert in domain.initial_rows(parameters, now_us):
        tables[insert.table].apply(insert)
    return tables


class MemoryProducer(Producer):
    """Takes records, and delivers them when it is polled and `away` is off."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.configuration = configuration
        self.records: list[tuple[str, bytes, bytes]] = []
        self.away = False
        self.refusal: KafkaError | None = None
        self.topics: dict[str, object] | None = {}
        self._undelivered: list[Callable[..., None]] = []

    @override
    def produce(self, topic: str, value: bytes, key: bytes, *, on_delivery: Callable[..., None]) -> None:
        self.records.append((topic, value, key))
        self._undelivered.append(on_delivery)

    @override
    def poll(self, timeout: float) -> int:
        # The newest record is delivered first, as partitions would.
        while self._undelivered and not self.away:
            self._undelivered.pop()(self.refusal, None)
        return 0

    @override
    def list_topics(self, topic: str, *, timeout: float) -> Any:
        # No topics at all stands for no broker.
        if self.topics is None:
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        error = None if topic in self.topics else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})
