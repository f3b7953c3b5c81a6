"""What the tests of the simulator share."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from cdc_simulator.basis import Basis
from cdc_simulator.domain import Domain
from cdc_simulator.domain_choice import choose_domain
from cdc_simulator.domains.orders.row import Item, OrderRow, Status
from local_stack import child_process
from local_stack.ports import free_ports

COMMAND = [sys.executable, "-m", "cdc_simulator", "run"]
PATIENCE_S = 60 * float(os.environ.get("TEST_PATIENCE", "1"))

Record = tuple[int, bytes, bytes]
ReadTopic = Callable[[str], list[Record]]


@pytest.fixture
def basis() -> Basis:
    return Basis(seed=7, rows=50, customers=5, items=20)


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
        consumer = Consumer({"bootstrap.servers": kafka, "group.id": "reader", "enable.auto.commit": False})
        try:
            places = [TopicPartition(topic, each) for each in consumer.list_topics(topic, 10).topics[topic].partitions]
            ends = {place.partition: consumer.get_watermark_offsets(place, 10)[1] for place in places}
            consumer.assign([TopicPartition(topic, place.partition, OFFSET_BEGINNING) for place in places])
            records: list[Record] = []
            while len(records) < sum(ends.values()):
                record = consumer.poll(10)
                assert record is not None, "the topic holds fewer records than its offsets say"
                assert record.error() is None, record.error()
                partition, key, value = record.partition(), record.key(), record.value()
                assert partition is not None
                assert key is not None
                assert value is not None
                records.append((partition, key, value))
            return records
        finally:
            consumer.close()

    return read


class Process:
    """The command as a process of its own, started again and again on the same database; `topic` as the setting."""

    patience_s = PATIENCE_S

    def __init__(self, directory: Path, kafka: str, topic: str) -> None:
        (self.port,) = free_ports(1)
        self.topic = topic
        self.database = directory / "simulator.sqlite3"
        self._log = directory / "simulator.log"
        self._environment = {
            "CDC_SIMULATOR_KAFKA_BOOTSTRAP": kafka,
            "CDC_SIMULATOR_TOPIC": topic,
            "CDC_SIMULATOR_DATABASE": str(self.database),
            "CDC_SIMULATOR_METRICS_PORT": str(self.port),
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, **settings: object) -> subprocess.Popen[bytes]:
        chosen = {f"CDC_SIMULATOR_{name.upper()}": str(value) for name, value in settings.items()}
        self._running.append(child_process.start(COMMAND, self._log, {**self._environment, **chosen}))
        return self._running[-1]

    def stop(self) -> None:
        for each in self._running:
            child_process.stop(each.pid)
            each.wait()

    def log(self) -> str:
        return self._log.read_text()

    def acknowledged(self) -> int:
        """The metric, or 0 while nothing answers."""
        lines = self.get("/metrics")[1].splitlines()
        values = [line.split()[1] for line in lines if line.startswith("cdc_simulator_acknowledged_lsn ")]
        return int(float(values[0])) if values else 0

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)


@pytest.fixture
def process(tmp_path: Path, kafka: str, create_topic: Callable[..., str]) -> Iterator[Process]:
    process = Process(tmp_path, kafka, create_topic("orders"))
    yield process
    process.stop()


@pytest.fixture
def process_type() -> type[Process]:
    return Process
