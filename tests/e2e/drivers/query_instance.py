"""One instance of the query service as a process, which a story may stop, kill, freeze and wipe."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from urllib.error import HTTPError
from urllib.request import urlopen

from local_stack import child_process

CURRENT_S = 10.0


class QueryInstance:
    """An instance that keeps its name, its ports and its directory from one start to the next."""

    def __init__(self, name: str, environment: Mapping[str, str], log: Path) -> None:
        """`environment` has every setting; nothing runs before `start`."""
        self.name = name
        self.address = f"127.0.0.1:{environment['QUERY_SERVICE_PORT']}"
        self.shard_address = f"127.0.0.1:{environment['QUERY_SERVICE_SHARD_PORT']}"
        self._status = f"http://127.0.0.1:{environment['QUERY_SERVICE_METRICS_PORT']}"
        self._data = Path(environment["QUERY_SERVICE_DATA_DIRECTORY"])
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """Everything that the instance has logged since its first start."""
        return self._log.read_text() if self._log.exists() else ""

    @property
    def pid(self) -> int:
        """The process id. Raises AssertionError when it has not been started."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether it has been started and not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the process; returns before it is ready."""
        self._process = child_process.start(
            [sys.executable, "-m", "query_service", "run"], self._log, self._environment
        )

    def assert_ready(self) -> None:
        """Raises AssertionError with the reason, and the end of the log, while the instance is not ready."""
        reason = self._unready()
        assert reason is None, f"{self.name}: {reason}\n{self.log[-2000:]}"

    def assert_members(self, count: int) -> None:
        """Raises AssertionError while the instance does not see this many in the group."""
        try:
            seen = self.metric("query_service_members")
        except OSError as error:
            raise AssertionError(f"{self.name}: {error}") from error

        assert seen == count, f"{self.name} sees {seen:g} members"

    def assert_current(self) -> None:
        """Raises AssertionError while the instance does not know that it lacks nothing of what there lately was."""
        lag_s = self.metric("query_service_lag_seconds")

        assert lag_s < CURRENT_S, f"{self.name} lags by {lag_s:.1f} s over all its partitions"

    def drain(self, timeout_s: float) -> None:
        """Sends SIGTERM and waits until the process has ended well."""
        self._running().terminate()
        status = self._running().wait(timeout_s)

        assert status == 0, self.log[-2000:]

    def kill(self) -> None:
        """Ends the process at once, as `kill -9` does."""
        self._running().kill()
        self._running().wait()

    def freeze(self) -> None:
        """Stops the process where it is."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets the process go on."""
        self._running().send_signal(signal.SIGCONT)

    def wipe(self) -> None:
        """Removes its directory."""
        rmtree(self._data)

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        with urlopen(f"{self._status}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def close(self) -> None:
        """Kills the process if it runs."""
        if self.running:
            self.kill()

    def _unready(self) -> str | None:
        if self._running().poll() is not None:
            return "it has ended"
        try:
            with urlopen(f"{self._status}/readyz", timeout=5):
                return None
        except HTTPError as error:
            with error:
                return error.read().decode()
        except OSError as error:
            return str(error)

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, f"{self.name} has not been started"
        return self._process
