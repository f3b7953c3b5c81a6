"""The containers of a compose file are started in its order, and always removed."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typing_extensions import override

from testkit.containers.compose_file import ComposeFile
from testkit.containers.engine import Engine
from testkit.containers.stack import ContainerStack, running_containers

CHECK = {"test": ["CMD", "check"], "interval": "1s", "timeout": "1s", "start_period": "0s", "retries": 0}
SERVER = {
    "image": "server:1.0",
    "healthcheck": CHECK,
    "depends_on": {"job": {"condition": "service_completed_successfully"}},
}
DONE, RUNNING = '{"Running": false, "ExitCode": 0}', '{"Running": true, "ExitCode": 0}'


@dataclass(frozen=True)
class FakeEngine(Engine):
    """Writes down the commands and answers `inspect`; `check` is the status of the health check."""

    check: int = 0
    job: str = DONE
    commands: list[list[str]] = field(default_factory=list)

    @override
    def _result(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        self.commands.append(list(arguments))
        answers = {"inspect": self.job if arguments[-1].endswith("-job") else RUNNING, "logs": "what it said"}
        status = self.check if arguments[0] == "exec" else 0
        return subprocess.CompletedProcess(arguments, status, answers.get(arguments[0], ""), "")

    def started(self) -> dict[str, list[str]]:
        """Returns the arguments of each container's `run` by its name, in the order of their starts."""
        return {each[3]: each for each in self.commands if each[0] == "run"}


def compose(**services: object) -> ComposeFile:
    return ComposeFile.model_validate({"name": "demo", "services": services, "volumes": {"data": {}}})


def test_a_container_starts_once_what_it_waits_for_is_done() -> None:
    engine = FakeEngine("docker")

    with running_containers(
        ContainerStack(engine, "demo", compose(server=SERVER, job={"image": "job:1.0"}), Path())
    ) as stack:
        assert list(engine.started()) == ["demo-job", "demo-server"]
        assert list(stack.ready_s) == ["job", "server"]

    assert engine.commands[-3:] == [
        ["rm", "--force", "--volumes", "demo-server", "demo-job"],
        ["volume", "rm", "--force", "demo_data"],
        ["network", "rm", "demo"],
    ]


def test_a_container_gets_what_the_file_says(tmp_path: Path) -> None:
    engine = FakeEngine("podman")
    container = {
        "image": "server:1.0",
        "healthcheck": CHECK,
        "command": ["run", "fast"],
        "environment": {"A": "1"},
        "volumes": ["data:/data", "./file:/etc/file:ro"],
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "restart": "unless-stopped",
    }

    with running_containers(ContainerStack(engine, "demo", compose(server=container), tmp_path)):
        [arguments] = engine.started().values()

    assert arguments[-3:] == ["server:1.0", "run", "fast"]
    flags = " ".join(arguments)
    for flag in (
        "--restart unless-stopped",
        "--read-only",
        "--env A=1",
        "--volume demo_data:/data",
        f"--volume {tmp_path}/file:/etc/file:ro",
        "--tmpfs /tmp",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--network-alias server",
        "--ulimit nofile=4096:4096",
    ):
        assert flag in flags


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (FakeEngine("docker", job='{"Running": false, "ExitCode": 7}'), "job ended with 7:\nwhat it said"),
        (FakeEngine("docker", check=1), "server is not healthy after . s:\nwhat it said"),
    ],
    ids=["ended", "never healthy"],
)
def test_what_does_not_start_is_told_with_its_log_and_removed(engine: FakeEngine, message: str) -> None:
    stack = ContainerStack(engine, "demo", compose(server=SERVER, job={"image": "job:1.0"}), Path())

    with pytest.raises(AssertionError, match=message), running_containers(stack):
        pass

    assert engine.commands[-1] == ["network", "rm", "demo"]
