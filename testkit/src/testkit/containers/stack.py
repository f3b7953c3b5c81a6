"""Runs the containers of a compose file with plain `run`, in their order, and stops and kills them for the tests."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from testkit.containers.compose_file import ComposeFile, Container
from testkit.containers.engine import ContainerError, Engine
from testkit.waiting import scaled

POLL_S = 0.5
LOG_LINES = "40"
REMOVAL_S = 120


@dataclass
class ContainerStack:
    """The containers of one project, on a network of their own; `directory` is where the file's paths begin."""

    engine: Engine
    project: str
    compose: ComposeFile
    directory: Path
    ready_s: dict[str, float] = field(default_factory=dict)
    """After how many seconds each container was healthy or done."""

    def up(self) -> None:
        """Starts every container as soon as its dependencies are ready; returns when all are.

        One without a health check is a job, which is ready when it has ended with status 0.

        Raises AssertionError with the log of a container that ends with an error or does not become healthy in time.
        """
        self.engine.run("network", "create", self.project)
        began = time.monotonic()
        started: dict[str, float] = {}
        while len(self.ready_s) < len(self.compose.services):
            for name, container in self.compose.services.items():
                if name not in started and container.depends_on.keys() <= self.ready_s.keys():
                    self._create(name, container)
                    started[name] = time.monotonic()
                elif name in started and name not in self.ready_s and self._is_ready(name, started[name]):
                    self.ready_s[name] = time.monotonic() - began
            time.sleep(POLL_S)

    def down(self) -> None:
        """Removes the containers, their volumes and the network, as far as they exist."""
        names = [self.id_of(name) for name in self.compose.services]
        volumes = [f"{self.project}_{volume}" for volume in self.compose.volumes]
        for command in (["rm", "--force", "--volumes", *names], ["volume", "rm", "--force", *volumes]):
            with suppress(ContainerError):
                self.engine.run(*command, timeout_s=REMOVAL_S)
        with suppress(ContainerError):
            self.engine.run("network", "rm", self.project)

    def kill(self, name: str) -> None:
        """Ends a container at once, as `kill -9` does; it stays down until `start`."""
        self.engine.run("kill", "--signal", "KILL", self.id_of(name))

    def stop(self, name: str) -> None:
        """Stops a container as a deployment does: SIGTERM, and SIGKILL after its grace period."""
        grace = self.compose.services[name].stop_grace_period
        self.engine.run("stop", "-t", str(grace), self.id_of(name))

    def start(self, name: str) -> None:
        """Starts a container again, and returns when it is healthy. Raises AssertionError with its log."""
        self.engine.run("start", self.id_of(name))
        began = time.monotonic()
        while not self._is_ready(name, began):
            time.sleep(POLL_S)

    def exit_status(self, name: str) -> int | None:
        """Returns the status that a container ended with; None while it runs."""
        state = json.loads(self.engine.run("inspect", "--format", "{{json .State}}", self.id_of(name)))
        return None if state["Running"] else int(state["ExitCode"])

    def read(self, name: str, path: str) -> str:
        """Returns the text of a file in a container that runs, as its own user sees it. Raises ContainerError."""
        return self.engine.run("exec", self.id_of(name), "cat", path)

    def published(self, name: str, port: int) -> str:
        """Returns the address on this machine, `host:port`, that leads to a port of a container."""
        return self.engine.run("port", self.id_of(name), f"{port}/tcp").splitlines()[0]

    def log_of(self, name: str) -> str:
        """Returns the last lines that a container wrote, to either stream."""
        try:
            return self.engine.run("logs", "--tail", LOG_LINES, self.id_of(name), merged=True)
        except ContainerError as error:
            return str(error)

    def id_of(self, name: str) -> str:
        """Returns the engine's name of a container."""
        return f"{self.project}-{name}"

    def _is_ready(self, name: str, started: float) -> bool:
        status, health = self.exit_status(name), self.compose.services[name].healthcheck
        assert status in (None, 0), f"{name} ended with {status}:\n{self.log_of(name)}"
        if health is None:
            return status == 0
        if self.engine.succeeds("exec", self.id_of(name), *health.command, timeout_s=scaled(10 * health.timeout)):
            return True
        waited_s = time.monotonic() - started
        assert waited_s < scaled(health.patience_s), (
            f"{name} is not healthy after {waited_s:.0f} s:\n{self.log_of(name)}"
        )
        return False

    def _create(self, name: str, container: Container) -> None:
        aliases = [name, *(alias for network in container.networks.values() for alias in network.aliases)]
        named = [word for alias in aliases for word in ("--network-alias", alias)]
        flags = [*self.engine.limits, "--network", self.project, *named, "--hostname", name]
        command = [*container.entrypoint[1:], *container.command]
        arguments = [*flags, *self._flags(container), container.image, *command]
        self.engine.run("run", "--detach", "--name", self.id_of(name), *arguments)

    def _flags(self, container: Container) -> Iterator[str]:
        """Yields the flags of `run` for a container beside name and network."""
        yield from ("--restart", container.restart, *(["--read-only"] if container.read_only else []))
        values: Mapping[str, list[str]] = {
            "--user": [container.user] if container.user else [],
            "--stop-signal": [container.stop_signal] if container.stop_signal else [],
            "--entrypoint": list(container.entrypoint[:1]),
            "--env": [f"{variable}={value}" for variable, value in container.environment.items()],
            "--volume": [self._volume(volume) for volume in container.volumes],
            "--publish": list(container.ports),
            "--sysctl": [f"{key}={value}" for key, value in container.sysctls.items()],
            "--tmpfs": list(container.tmpfs),
            "--cap-drop": list(container.cap_drop),
            "--security-opt": [option.removesuffix(":true") for option in container.security_opt],
        }
        for flag, each in values.items():
            for value in each:
                yield from (flag, value)

    def _volume(self, volume: str) -> str:
        source, _, rest = volume.partition(":")
        if source in self.compose.volumes:
            return f"{self.project}_{source}:{rest}"
        return f"{(self.directory / source).resolve()}:{rest}"


@contextmanager
def running_containers(stack: ContainerStack) -> Iterator[ContainerStack]:
    """Yields the stack once all its containers are ready; nothing of it is left at the end of the block."""
    try:
        stack.up()
        yield stack
    finally:
        stack.down()
