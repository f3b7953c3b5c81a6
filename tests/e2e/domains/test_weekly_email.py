"""The weekly e-mail of document 002: from open positions, through `us-share-holders`, to one mail for each client."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from mailbox import Maildir
from pathlib import Path
from typing import Any

import pytest
from drivers.pipeline_checks import assert_topic_holds, expected_of

from local_stack.running_stack import RunningStack
from local_stack.settings import ROOT
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from testkit import processes
from testkit.charts import CHARTS, helm_program, render
from testkit.ports import free_port
from testkit.waiting import eventually, scaled, wait_until

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(helm_program() is None, reason="there is no Helm: `make charts` builds it, with Go"),
]

STORE, SIMULATOR = "us-share-holders", "cdc-simulator-positions"
SEND_EMAIL = ROOT / "docs/examples/weekly-email/send_email.py"
POD_ADDRESS, POD_FILES = "query-service-$((JOB_COMPLETION_INDEX + 1)).query-service:50051", "/etc/statecast/job"
"""Only the pods of a cluster have them: the name of the instance beside a runner, and the mounted ConfigMap."""
PARALLEL = 2


@dataclass(frozen=True)
class Mails:
    """A mail server that keeps its mails."""

    port: int
    directory: Path

    def all(self) -> list[Message]:
        """Returns the mails that have come."""
        return list(Maildir(self.directory))

    def texts(self) -> dict[str, str]:
        """Returns the text of the mail of each recipient."""
        return {str(mail["To"]).partition("@")[0]: str(mail.get_payload()).strip() for mail in self.all()}


class CronJob:
    """The CronJob as the chart renders it; its runners are processes beside the instances of a stack."""

    def __init__(self, stack: RunningStack, mails: Mails, directory: Path) -> None:
        self._addresses = [query.address for query in stack.file.queries]
        values = {
            "runners": len(self._addresses),
            "global.kafka.bootstrap": stack.file.kafka.bootstrap,
            "env.SMTP_PORT": str(mails.port),
            "options": ["--parallel", str(PARALLEL), "--lease", "5"],
        }
        objects = render(CHARTS["jobs"], values, "--set-file", f"program={SEND_EMAIL}")
        by_kind: dict[str, Any] = {each["kind"]: each for each in objects}
        [self._container] = by_kind["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        self._directory = directory
        for name, text in by_kind["ConfigMap"]["data"].items():
            (directory / name).write_text(text)

    def start(self, run: str) -> list[processes.Popen]:
        """Starts a runner beside each instance, as the Kubernetes job of this name does."""
        return [self.start_pod(run, index) for index in range(len(self._addresses))]

    def start_pod(self, run: str, index: int) -> processes.Popen:
        """Starts one of them, or starts it again."""
        script = "\0".join([*self._container["command"], *self._container["args"]])
        assert POD_ADDRESS in script
        assert POD_FILES in script
        script = script.replace(POD_ADDRESS, self._addresses[index]).replace(POD_FILES, str(self._directory))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        values = {each["name"]: each["value"] for each in self._container["env"] if "value" in each}
        environment = {**values, "PATH": path, "RUN": run, "JOB_COMPLETION_INDEX": str(index)}
        return processes.start(script.split("\0"), self.log(run, index), environment)

    def log(self, run: str, index: int) -> Path:
        """Returns the file of a runner's output."""
        return self._directory / f"{run}-{index}.log"


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[Mails]:
    """A real mail server."""
    made = Mails(free_port(), tmp_path / "mails")
    Maildir(made.directory)
    keeping = ["-c", "aiosmtpd.handlers.Mailbox", str(made.directory)]
    command = [sys.executable, "-m", "aiosmtpd", "-n", "-l", f"127.0.0.1:{made.port}", *keeping]
    server = processes.start(command, tmp_path / "mail-server.log", {})
    yield made
    processes.stop(server.pid)
    server.wait(scaled(10))


@pytest.fixture
def holders(domains_stack: RunningStack) -> Iterator[dict[str, ShareHolder]]:
    """The clients with US shares by the model, once the source rests and the pipeline has caught up."""
    bootstrap = domains_stack.file.kafka.bootstrap
    domains_stack.stop(SIMULATOR)
    expected: Any = expected_of(bootstrap, STORE)
    eventually(lambda: assert_topic_holds(bootstrap, STORE, expected), timeout_s=240)
    yield {row.client: row for row in expected.values()}
    domains_stack.start(SIMULATOR)
    domains_stack.wait_ready(SIMULATOR, scaled(60))


def test_each_client_with_us_shares_gets_one_mail_though_a_runner_is_killed(
    domains_stack: RunningStack, holders: dict[str, ShareHolder], mails: Mails, tmp_path: Path
) -> None:
    job, run = CronJob(domains_stack, mails, tmp_path), "weekly-email-29000001"
    killed, *runners = job.start(run)
    wait_until(lambda: len(mails.all()) > len(holders) // 4, "some mails have come", timeout_s=120)
    killed.kill()
    killed.wait()
    runners.append(job.start_pod(run, 0))
    statuses = {runner.wait(scaled(300)) for runner in runners}

    report, texts = job.log(run, 0).read_text(), mails.texts()
    in_doubt = {line.split()[-1] for line in report.splitlines() if line.startswith("in doubt")}
    assert statuses == {1 if in_doubt else 0}, report
    assert len(in_doubt) <= PARALLEL, "more was in doubt than the killed runner had in work"
    assert texts.keys() | in_doubt == holders.keys()
    for client, text in texts.items():
        holder = holders[client]
        assert text == f"You hold {holder.shares} shares in {holder.positions} positions."

    for runner in job.start(run):
        assert runner.wait(scaled(120)) in statuses
    assert len(mails.all()) == len(texts), "a client got two mails"
