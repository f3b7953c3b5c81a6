"""The command as a process of its own, against a real broker."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from statecast.orders.v1.order_pb2 import OrderChange
from testkit.broker import BrokerProcess
from testkit.topics import create_topic

if TYPE_CHECKING:
    from conftest import Process, ReadTopic

ORDERS, LIMIT = 300, 3000


def run_to_its_end(*arguments: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cdc_simulator", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of the test alone that is not started yet; the test kills and restarts it."""
    broker = BrokerProcess(tmp_path / "kafka", heap="256m")
    yield broker
    broker.kill()


@pytest.fixture
def process_of_broker(tmp_path: Path, broker: BrokerProcess, process_type: "type[Process]") -> "Iterator[Process]":
    with process_type(tmp_path, broker.bootstrap, "orders") as process:
        yield process


def test_each_partition_has_the_changes_of_an_order_in_order(process: "Process", read_topic: "ReadTopic") -> None:
    process.start(rate=5000, limit=LIMIT, rows=ORDERS)
    status = process.wait_end()
    records = read_topic(process.topic)

    assert status == 0, process.log
    assert len(records) == ORDERS + LIMIT
    for partition in range(4):
        changes = [OrderChange.FromString(value) for number, _, value in records if number == partition]
        sequence = [change.source.log_sequence_number for change in changes]
        assert sequence == sorted(sequence)


def test_told_to_stop_it_publishes_the_rest_and_ends_with_success(process: "Process") -> None:
    process.start(rate=2000, rows=ORDERS)
    process.wait_until(lambda: process.acknowledged() > ORDERS)
    ready = process.get("/readyz")

    assert process.stop() == 0, process.log
    assert ready == (200, "ok\n")
    assert '"left_for_the_next_start": 0' in process.log


def test_it_waits_for_a_topic_that_is_not_there(process: "Process") -> None:
    process.start(topic="nowhere")
    process.wait_until(lambda: "run kafka-topics" in process.get("/readyz")[1])
    status, reason = process.get("/readyz")

    assert (status, process.stop()) == (503, 0)
    assert "topic nowhere does not exist" in reason
    assert "topic nowhere does not exist" in process.log


@pytest.mark.stack
@pytest.mark.timeout(300)
def test_it_goes_on_when_the_broker_comes_and_when_it_comes_back(
    process_of_broker: "Process", broker: BrokerProcess
) -> None:
    process = process_of_broker
    process.start(rate=500, rows=ORDERS)
    process.wait_until(lambda: "no broker answers" in process.get("/readyz")[1])
    broker.start()
    create_topic(broker.bootstrap, "orders")
    process.wait_until(lambda: process.acknowledged() > ORDERS)
    broker.kill()
    process.wait_until(lambda: "cannot reach the broker" in process.log)
    before = process.acknowledged()
    broker.start()
    process.wait_until(lambda: process.acknowledged() > before + 500)

    assert process.get("/readyz") == (200, "ok\n")


def test_a_wrong_setting_ends_it_with_one_line_and_status_2() -> None:
    ended = run_to_its_end("run", environment={"CDC_SIMULATOR_RATE": "fast"})

    assert ended.returncode == 2
    assert ended.stderr.startswith("cdc-simulator: CDC_SIMULATOR_RATE='fast': ")
    assert ended.stderr.count("\n") == 1


def test_an_unknown_domain_ends_it_with_one_line_and_status_2() -> None:
    ended = run_to_its_end("run", "--domain", "bokings", environment={})

    assert ended.returncode == 2
    assert ended.stderr.startswith("cdc-simulator: CDC_SIMULATOR_DOMAIN='bokings': ")
    assert ended.stderr.endswith("did you mean bookings?\n")
    assert ended.stderr.count("\n") == 1


def test_a_port_that_is_taken_ends_it_with_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        environment = {"CDC_SIMULATOR_METRICS_PORT": port, "CDC_SIMULATOR_DATABASE": str(tmp_path / "db")}
        ended = run_to_its_end("run", environment=environment)

    assert ended.returncode == 1
    assert ended.stderr.startswith(f"cdc-simulator: cannot listen on 127.0.0.1:{port} ")
    assert ended.stderr.count("\n") == 1


def test_the_help_names_the_variables_and_the_exit_statuses() -> None:
    ended = run_to_its_end("--help", environment={})

    assert ended.returncode == 0
    assert "CDC_SIMULATOR_KAFKA_BOOTSTRAP [127.0.0.1:9092]" in ended.stdout
    assert "exit status:" in ended.stdout


def test_the_help_of_run_lists_the_domains() -> None:
    ended = run_to_its_end("run", "--help", environment={})

    assert "bookings, invoices, odds, orders, positions" in " ".join(ended.stdout.split())
