"""A weekly e-mail to every client, while instances and runners come, go and are killed: one mail each."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from confluent_kafka import Producer

from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from statecast.state.v1.state_pb2 import StateRecord
from testkit import processes
from testkit.ports import free_port
from testkit.pytest_plugin import CreateTopic
from testkit.query_cluster import STORE, QueryCluster, query_cluster
from testkit.waiting import eventually, scaled

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[3]
SEND_EMAIL = ROOT / "docs" / "examples" / "weekly-email" / "send_email.py"
MESSAGE = "statecast.portfolio.v1.ShareHolder"
CLIENTS = [f"client-{number:03}" for number in range(160)]
PARALLEL = 3
RUN = "weekly-email-2026-W48"


class MailSink:
    """A mail server that keeps every mail."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []
        """Recipient and Message-ID, in the order in which they came."""

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  aiosmtpd's name
        """Takes a mail."""
        headers = envelope.content.decode().split("\r\n\r\n")[0].split("\r\n")
        [message_id] = [line.partition(": ")[2] for line in headers if line.startswith("Message-ID")]
        self.mails.append((envelope.rcpt_tos[0].partition("@")[0], message_id))
        return "250 OK"

    def assert_came(self, count: int) -> None:
        """Raises AssertionError while fewer mails have come."""
        assert len(self.mails) >= count


class Runners:
    """Starts `statecast each-local` beside instances."""

    def __init__(self, cluster: QueryCluster, topic: str, smtp_port: int, directory: Path) -> None:
        self._cluster, self._topic, self._directory = cluster, topic, directory
        self._environment = {"SMTP_PORT": str(smtp_port)}
        self._running: list[processes.Popen] = []

    def beside(self, name: str, *options: str) -> processes.Popen:
        """Starts a runner and keeps its output."""
        command = [sys.executable, "-m", "statecast_client", "each-local", STORE, "--run", RUN, "--topic", self._topic]
        command += ["--address", self._cluster.instances[name].address, "--kafka", self._cluster.bootstrap]
        command += ["--parallel", str(PARALLEL), "--lease", "5", *options, "--", sys.executable, str(SEND_EMAIL)]
        runner = processes.start(command, self._log_file(len(self._running)), self._environment)
        self._running.append(runner)
        return runner

    def close(self) -> None:
        """Ends those that run."""
        for runner in self._running:
            processes.stop(runner.pid)
            runner.wait(scaled(10))

    def report(self) -> str:
        """Returns the output of the runner that was started last."""
        return self._log_file(len(self._running) - 1).read_text()

    def _log_file(self, number: int) -> Path:
        return self._directory / f"runner-{number}.log"


def write_holders(bootstrap: str, topic: str) -> None:
    """Writes a row for each client, as the processor does."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for sequence, client in enumerate(CLIENTS, start=1):
        holder = ShareHolder(client=client, positions=2, shares=sequence)
        record = StateRecord(epoch=1, sequence=sequence, payload=holder.SerializeToString())
        producer.produce(topic, record.SerializeToString(), client)
    assert producer.flush(scaled(30)) == 0


@pytest.fixture
def sink() -> Iterator[tuple[MailSink, int]]:
    """A mail server, and its port."""
    mails = MailSink()
    controller = Controller(mails, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield mails, controller.port
    controller.stop()


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[QueryCluster]:
    """Three instances that serve every client."""
    with query_cluster(kafka, tmp_path / "cluster", message=MESSAGE) as made:
        write_holders(kafka, made.topic)
        made.start("query-1", "query-2", "query-3")
        yield made


@pytest.fixture
def runners(
    cluster: QueryCluster, sink: tuple[MailSink, int], create_topic: CreateTopic, tmp_path: Path
) -> Iterator[Runners]:
    """Runners of one run, which send mails to the sink."""
    made = Runners(cluster, create_topic("job-runs", cleanup_policy="delete"), sink[1], tmp_path)
    yield made
    made.close()


def test_each_client_gets_one_mail_whoever_comes_goes_or_is_killed(
    cluster: QueryCluster, sink: tuple[MailSink, int], runners: Runners
) -> None:
    mails, _ = sink
    first, _, third = (runners.beside(name) for name in ("query-1", "query-2", "query-3"))
    eventually(lambda: mails.assert_came(20), timeout_s=60)
    cluster.instances["query-2"].kill()
    eventually(lambda: mails.assert_came(40), timeout_s=60)
    cluster.start("query-4")
    fourth = runners.beside("query-4")
    eventually(lambda: mails.assert_came(60), timeout_s=60)
    third.terminate()
    cluster.instances["query-3"].drain(30)
    eventually(lambda: mails.assert_came(80), timeout_s=60)
    first.kill()
    last = runners.beside("query-1")
    statuses = {fourth.wait(scaled(120)), last.wait(scaled(120))}
    assert third.wait(scaled(60)) == 4, "a runner that is stopped says that the run is not complete"

    report = runners.report()
    handled = Counter(client for client, _ in mails.mails)
    in_doubt = {line.split()[-1] for line in report.splitlines() if line.startswith("in doubt")}
    assert statuses == {1 if in_doubt else 0}, report
    assert len(in_doubt) <= PARALLEL, "a runner had more rows in work than it may"
    assert handled.keys() | in_doubt == set(CLIENTS)
    assert set(handled.values()) == {1}


@pytest.mark.long
def test_a_row_in_doubt_is_handled_again_under_the_same_id_where_that_is_asked_for(
    sink: tuple[MailSink, int], runners: Runners
) -> None:
    mails, _ = sink
    killed = runners.beside("query-1")
    eventually(lambda: mails.assert_came(20), timeout_s=60)
    killed.kill()

    running = [runners.beside(name, "--in-doubt", "repeat") for name in ("query-1", "query-2", "query-3")]
    statuses = [runner.wait(scaled(120)) for runner in running]

    handled = Counter(client for client, _ in mails.mails)
    assert statuses == [0, 0, 0], runners.report()
    assert handled.keys() == set(CLIENTS)
    assert handled.total() - len(CLIENTS) <= PARALLEL, "more was repeated than had been in work"
    assert len(set(mails.mails)) == len(CLIENTS), "a repeated mail has the Message-ID of the first one"


def test_a_run_that_is_complete_does_nothing_more(sink: tuple[MailSink, int], runners: Runners) -> None:
    mails, _ = sink
    running = [runners.beside(name) for name in ("query-1", "query-2", "query-3")]
    assert [runner.wait(scaled(120)) for runner in running] == [0, 0, 0], runners.report()

    again = runners.beside("query-1")

    assert again.wait(scaled(60)) == 0
    assert len(mails.mails) == len(CLIENTS)
    assert f"run {RUN} of {STORE} complete: {len(CLIENTS)} handled, 0 failed, 0 in doubt" in runners.report()
