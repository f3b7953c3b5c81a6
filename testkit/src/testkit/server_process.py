"""A server of others, such as a broker or a database, as a child process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from testkit import processes
from testkit.waiting import wait_until

TAIL_LINES = 40


class ServerProcess:
    """One process at a time, with the same command and log from one start to the next. Nothing runs before `start`."""

    ready_timeout_s = 120.0

    def __init__(
        self, name: str, command: Callable[[], list[str]], answers: Callable[[], bool], log_file: Path
    ) -> None:
        """`name` is for people. `command` runs the server in the foreground; `answers` says whether it is ready now."""
        self.answers = answers
        self._name = name
        self._command = command
        self._log_file = log_file
        self._process: processes.Popen | None = None

    @property
    def log(self) -> str:
        """Everything that has been logged since the first start."""
        return self._log_file.read_text() if self._log_file.exists() else ""

    @property
    def pid(self) -> int:
        """The process id. Raises AssertionError when it has not been started."""
        return self._launched.pid

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Starts the server, and stops it at the end of the block."""
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def start(self, timeout_s: float | None = None) -> None:
        """Starts the server and waits until it answers. Raises AssertionError with the end of its log."""
        self.launch()
        self.wait_ready(timeout_s)

    def launch(self) -> None:
        """Starts the server and does not wait."""
        self._process = processes.start(self._command(), self._log_file)

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Waits until the launched server answers. Raises AssertionError with the end of its log."""
        process = self._launched
        timeout_s = self.ready_timeout_s if timeout_s is None else timeout_s
        wait_until(lambda: process.poll() is not None or self.answers(), self._state, timeout_s)
        assert process.poll() is None, f"{self._name} has ended:\n{self._state()}"

    def stop(self) -> None:
        """Stops the server in order, if it runs."""
        if self._process is not None:
            processes.stop(self._process.pid)
            self._process.wait()

    def kill(self) -> None:
        """Ends the server at once, as `kill -9` does, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _launched(self) -> processes.Popen:
        assert self._process is not None, f"{self._name} has not been started"
        return self._process

    def _state(self) -> str:
        """Returns the details for an error about a server that is not ready."""
        return processes.tail(self._log_file, TAIL_LINES)
