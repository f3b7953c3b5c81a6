"""The command as a process of its own, against a real broker."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from cdc_simulator.change_events import order_change
from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.logged_change import LoggedChange
from cdc_simulator.order_row import Shop
from cdc_simulator.testing import MemoryTable
from cdc_simulator.workload import next_mutation
from local_stack import child_process
from local_stack.broker import Broker
from local_stack.ports import free_ports
from statecast.orders.v1.order_pb2 import OrderChange

COMMAND = [sys.executable, "-m", "cdc_simulator", "run"]
SHOP = Shop(seed=5, orders=300, customers=20, items=30)
LIMIT = 3000
PATIENCE_S = 60 * float(os.environ.get("TEST_PATIENCE", "1"))
ReadTopic = Callable[[str], list[tuple[int, bytes, OrderChange]]]


class Process:
    """Starts the command again and again on the same database."""

    def __init__(self, directory: Path, kafka: str, topic: str) -> None:
        self.log = directory / "simulator.log"
        (self.port,) = free_ports(1)
        self.environment = {
            "CDC_SIMULATOR_KAFKA_BOOTSTRAP": kafka,
            "CDC_SIMULATOR_TOPIC": topic,
            "CDC_SIMULATOR_DATABASE": str(directory / "orders.sqlite3"),
            "CDC_SIMULATOR_METRICS_PORT": str(self.port),
            **{f"CDC_SIMULATOR_{name.upper()}": str(value) for name, value in SHOP._asdict().items()},
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, **settings: object) -> subprocess.Popen[bytes]:
        chosen = {f"CDC_SIMULATOR_{name.upper()}": str(value) for name, value in settings.items()}
        self._running.append(child_process.start(COMMAND, self.log, {**self.environment, **chosen}))
        return self._running[-1]

    def stop(self) -> None:
        for each in self._running:
            child_process.stop(each.pid)
            each.wait()

    def acknowledged(self) -> float:
        """The metric, or 0 while nothing answers."""
        lines = self.get("/metrics")[1].splitlines()
        values = [line.split()[1] for line in lines if line.startswith("cdc_simulator_acknowledged_lsn ")]
        return float(values[0]) if values else 0

    def wait_for(self, acknowledged: int) -> None:
        wait_until(lambda: self.acknowledged() >= acknowledged, self.log.read_text)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""


@pytest.fixture
def process(tmp_path: Path, kafka: str, create_topic: Callable[..., str]) -> Iterator[Process]:
    process = Process(tmp_path, kafka, create_topic("orders"))
    yield process
    process.stop()


def wait_until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def run_to_its_end(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        COMMAND, env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.kafka
def test_killed_again_and_again_it_leaves_no_gap_and_goes_on_identically(
    process: Process, read_topic: ReadTopic
) -> None:
    for part in (1, 2, 3):
        running = process.start(rate=1000, limit=LIMIT)
        process.wait_for(SHOP.orders + part * LIMIT // 5)
        kill(running)
    status = process.start(rate=5000, limit=LIMIT).wait(PATIENCE_S)

    assert status == 0, process.log.read_text()
    changes = by_log_sequence_number(read_topic(process.environment["CDC_SIMULATOR_TOPIC"]))
    assert sorted(changes) == list(range(1, SHOP.orders + LIMIT + 1))
    assert len({change.source.epoch for change in changes.values()}) == 1
    times = [changes[lsn].source.commit_time.ToNanoseconds() for lsn in sorted(changes)]
    assert times == sorted(times)
    assert_the_same_as_without_a_kill(changes)
    assert_the_end_is_the_table(changes, Path(process.environment["CDC_SIMULATOR_DATABASE"]))


def by_log_sequence_number(records: list[tuple[int, bytes, OrderChange]]) -> dict[int, OrderChange]:
    """The changes without their repetitions, which must be equal but for the time of capture."""
    changes: dict[int, OrderChange] = {}
    for _, _, change in records:
        change.ClearField("captured_at")
        assert changes.setdefault(change.source.log_sequence_number, change) == change
    return changes


def assert_the_same_as_without_a_kill(changes: Mapping[int, OrderChange]) -> None:
    now_us = 1_724_848_496_123_456
    table = MemoryTable(initial_rows(SHOP, now_us), SHOP.orders + 1)
    for lsn in range(SHOP.orders + 1, SHOP.orders + LIMIT + 1):
        mutation = next_mutation(table, SHOP, lsn, now_us)
        table.apply(mutation)
        before, after = getattr(mutation, "before", None), getattr(mutation, "after", None)
        expected = order_change(LoggedChange(lsn, "", 0, False, before, after), 0, 0)
        assert without_times(changes[lsn]) == without_times(expected)


def without_times(change: OrderChange) -> OrderChange:
    timeless = OrderChange.FromString(change.SerializeToString())
    for field in ("source", "captured_at"):
        timeless.ClearField(field)
    for order in [getattr(timeless, side) for side in ("before", "after") if timeless.HasField(side)]:
        for field in ("placed_at", "updated_at", "estimated_delivery"):
            order.ClearField(field)
    return timeless


def assert_the_end_is_the_table(changes: Mapping[int, OrderChange], database: Path) -> None:
    end: dict[str, tuple[str, int, int]] = {}
    for lsn in sorted(changes):
        after = changes[lsn].after
        if changes[lsn].HasField("after"):
            end[after.order_id] = (after.customer_id, after.total_cents, after.updated_at.ToMicroseconds())
        else:
            del end[changes[lsn].before.order_id]
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT order_id, customer_id, total_cents, updated_at_us FROM orders").fetchall()
    assert end == {row[0]: row[1:] for row in rows}


@pytest.mark.kafka
def test_each_partition_has_the_changes_of_an_order_in_order(process: Process, read_topic: ReadTopic) -> None:
    status = process.start(rate=5000, limit=LIMIT).wait(PATIENCE_S)
    records = read_topic(process.environment["CDC_SIMULATOR_TOPIC"])

    assert status == 0, process.log.read_text()
    assert len(records) == SHOP.orders + LIMIT
    for partition in range(4):
        sequence = [change.source.log_sequence_number for place, _, change in records if place == partition]
        assert sequence == sorted(sequence)


@pytest.mark.kafka
def test_told_to_stop_it_publishes_the_rest_and_ends_with_success(process: Process) -> None:
    running = process.start(rate=2000)
    process.wait_for(SHOP.orders + 1)
    ready = process.get("/readyz")
    running.terminate()

    assert running.wait(PATIENCE_S) == 0, process.log.read_text()
    assert ready == (200, "ready\n")
    assert '"left_for_the_next_start": 0' in process.log.read_text()


@pytest.mark.kafka
def test_it_waits_for_a_topic_that_is_not_there(process: Process) -> None:
    running = process.start(topic="nowhere")
    wait_until(lambda: "run kafka-topics" in process.get("/readyz")[1], process.log.read_text)
    status, reason = process.get("/readyz")
    running.terminate()

    assert (status, running.wait(PATIENCE_S)) == (503, 0)
    assert "topic nowhere does not exist" in reason
    assert "topic nowhere does not exist" in process.log.read_text()


@pytest.mark.kafka
def test_it_goes_on_when_the_broker_comes_and_when_it_comes_back(tmp_path: Path, kafka: str) -> None:
    port, controller_port = free_ports(2)
    broker = Broker(tmp_path / "kafka", port, controller_port, heap="256m")
    broker.prepare()
    process = Process(tmp_path, broker.bootstrap, "orders")
    started = []
    try:
        process.start(rate=500)
        wait_until(lambda: "no broker answers" in process.get("/readyz")[1], process.log.read_text)
        started.append(start_with_topic(broker))
        process.wait_for(SHOP.orders + 1)
        kill(started[0])
        wait_until(lambda: "broker away" in process.log.read_text(), process.log.read_text)
        before = int(process.acknowledged())
        started.append(child_process.start(broker.command(), tmp_path / "broker.log"))

        process.wait_for(before + 500)
    finally:
        process.stop()
        for each in started:
            kill(each)


def start_with_topic(broker: Broker) -> subprocess.Popen[bytes]:
    running = child_process.start(broker.command(), broker.directory / "broker.log")
    wait_until(broker.answers, (broker.directory / "broker.log").read_text)
    AdminClient({"bootstrap.servers": broker.bootstrap}).create_topics([NewTopic("orders", 4)])["orders"].result()
    return running


def kill(running: subprocess.Popen[bytes]) -> None:
    running.kill()
    running.wait()


def test_a_wrong_setting_ends_it_with_one_line_and_status_2(tmp_path: Path) -> None:
    ended = run_to_its_end({"CDC_SIMULATOR_RATE": "fast"})

    assert ended.returncode == 2
    assert ended.stderr.startswith("cdc-simulator: CDC_SIMULATOR_RATE='fast': ")
    assert ended.stderr.count("\n") == 1


def test_a_port_that_is_taken_ends_it_with_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = run_to_its_end({"CDC_SIMULATOR_METRICS_PORT": port, "CDC_SIMULATOR_DATABASE": str(tmp_path / "db")})

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"cdc-simulator: cannot listen on 127.0.0.1:{port} ")
    assert ended.stderr.count("\n") == 1


def test_the_help_names_the_variables_and_the_exit_statuses() -> None:
    ended = subprocess.run([*COMMAND[:-1], "--help"], capture_output=True, text=True, check=True)

    assert "CDC_SIMULATOR_KAFKA_BOOTSTRAP [127.0.0.1:9092]" in ended.stdout
    assert "exit status:" in ended.stdout
