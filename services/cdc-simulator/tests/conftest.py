"""Fixtures of the simulator's tests."""

from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path

import pytest

from cdc_simulator.domain import DatabaseParameters, Domain
from cdc_simulator.domains import choose_domain
from cdc_simulator.domains.orders import Item, OrderRow, Status
from testkit import topics
from testkit.ports import free_port
from testkit.service_process import ServiceProcess
from testkit.waiting import wait_until

Record = tuple[int, bytes, bytes]
ReadTopic = Callable[[str], list[Record]]


@pytest.fixture
def parameters() -> DatabaseParameters:
    return DatabaseParameters(seed=7, rows=50, customers=5, items=20)


@pytest.fixture
def orders() -> Domain:
    return choose_domain("orders")


@pytest.fixture
def row() -> OrderRow:
    items = (Item("item-0001", 2, 150), Item("item-0002", 1, 99))
    return OrderRow(42, "customer-0003", Status.PAID, items, 399, "EUR", 1_000_001, 2_000_002, "2024-08-28", "")


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    return tmp_path / "database" / "orders.sqlite3"


@pytest.fixture
def read_topic(kafka: str) -> ReadTopic:
    """Reads a topic to its end: partition, key and value of each record, in order within each partition."""

    def read(topic: str) -> list[Record]:
        records = topics.read_topic(kafka, topic)
        return [(each.partition, each.key, each.value) for each in records if each.value is not None]

    return read


class Process(ServiceProcess):
    """The command as a process of its own, started again and again on the same database; `topic` as the setting."""

    def __init__(self, directory: Path, kafka: str, topic: str) -> None:
        self.topic = topic
        self.database = directory / "simulator.sqlite3"
        port = free_port()
        settings = {"kafka_bootstrap": kafka, "topic": topic, "database": self.database, "metrics_port": port}
        super().__init__("cdc_simulator", settings, directory / "simulator.log", port)

    def acknowledged(self) -> int:
        """Returns the metric, or 0 while nothing answers."""
        try:
            return int(self.metric("cdc_simulator_acknowledged_lsn"))
        except (OSError, HTTPException):  # it has not begun, or ends while it answers
            return 0

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, self.log_tail, interval_s=0.02)


@pytest.fixture
def process(tmp_path: Path, kafka: str, create_topic: Callable[..., str]) -> Iterator[Process]:
    with Process(tmp_path, kafka, create_topic("orders")) as process:
        yield process


@pytest.fixture
def process_type() -> type[Process]:
    return Process
