"""A service as a process: started, asked for its readiness and metrics, stopped, killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
from prometheus_client.parser import text_string_to_metric_families

from testkit import processes
from testkit.waiting import scaled, wait_until

HTTP_TIMEOUT_S = 10.0
TAIL_LINES = 40


@dataclass(frozen=True)
class StatusClient:
    """Reads `/healthz`, `/readyz` and `/metrics` of the service at `url`, such as `http://127.0.0.1:8080`."""

    url: str

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and the text of an answer; status 0 when nothing listens."""
        try:
            with urlopen(self.url + path, timeout=scaled(HTTP_TIMEOUT_S)) as response:
                return response.status, response.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def unready_reason(self) -> str | None:
        """Returns why the service is not ready, in its own words; None when it is ready."""
        status, text = self.get("/readyz")
        if status == 200:
            return None
        return text or f"nothing answers at {self.url}"

    def metric(self, name: str, /, **labels: str) -> float:
        """Returns the sum of a metric over all samples that have the labels. Raises OSError when nothing listens."""
        with urlopen(f"{self.url}/metrics", timeout=scaled(HTTP_TIMEOUT_S)) as response:
            lines = response.read().decode().splitlines()
        # Of a page of hundreds of samples a few are wanted, many times a second in measurements.
        wanted = "".join(f"{line}\n" for line in lines if line.startswith(name))
        families = text_string_to_metric_families(wanted)
        samples = (sample for family in families for sample in family.samples if sample.name == name)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


class ServiceProcess:
    """One process at a time, with the same settings, ports and log from one start to the next.

    `package` is run as `python -m package run`, with `arguments` after that. Settings are given without the service's
    prefix: `{"kafka_bootstrap": …}` of `query_service` becomes `QUERY_SERVICE_KAFKA_BOOTSTRAP`. `status_port` is where
    the service answers `/readyz` and `/metrics`. Nothing runs before `start`.
    """

    def __init__(
        self,
        package: str,
        settings: Mapping[str, object],
        log_file: Path,
        status_port: int,
        arguments: Sequence[str] = (),
    ) -> None:
        self.package = package
        self.settings = dict(settings)
        self.log_file = log_file
        self.status = StatusClient(f"http://127.0.0.1:{status_port}")
        self._arguments = tuple(arguments)
        self._process: processes.Popen | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> str:
        """Everything that has been logged since the first start."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    @property
    def pid(self) -> int:
        """The process id. Raises AssertionError when it has not been started."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """The exit status of the last process; None while it runs."""
        return self._started().poll()

    @property
    def rss_bytes(self) -> int:
        """The resident memory of the process, without that of its children."""
        return int(psutil.Process(self.pid).memory_info().rss)

    @property
    def cpu_s(self) -> float:
        """The CPU time that the process has used so far, without that of its children."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def start(self, **settings: object) -> None:
        """Starts the process, with more settings for this start only. Returns before it is ready."""
        command = [sys.executable, "-m", self.package, "run", *self._arguments]
        self._process = processes.start(command, self.log_file, self.environment(**settings))

    def environment(self, **settings: object) -> dict[str, str]:
        """Returns the environment variables of the settings, with more settings on top."""
        prefix = self.package.upper()
        return {f"{prefix}_{name.upper()}": str(value) for name, value in {**self.settings, **settings}.items()}

    def run_command(self, name: str, *options: str, timeout_s: float = 240.0) -> str:
        """Runs another command of the program with the same arguments to its end, and returns its output.

        Raises AssertionError with its stderr when it fails.
        """
        finished = subprocess.run(
            [sys.executable, "-m", self.package, name, *self._arguments, *options],
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(timeout_s),
        )
        if finished.returncode:
            raise AssertionError(finished.stderr)
        return finished.stdout + finished.stderr

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and the text of an answer of the status server; status 0 when nothing listens."""
        return self.status.get(path)

    def metric(self, name: str, /, **labels: str) -> float:
        """Returns the sum of a metric over all samples that have the labels. Raises OSError when nothing listens."""
        return self.status.metric(name, **labels)

    def unready_reason(self) -> str | None:
        """Returns why the service is not ready; None when it is."""
        if not self.running:
            return f"it has ended with status {self.exit_status}"
        return self.status.unready_reason()

    def assert_ready(self) -> None:
        """Raises AssertionError with the reason and the end of the log while the service is not ready."""
        reason = self.unready_reason()
        assert reason is None, f"{self.package} is not ready: {reason}\n{self.log_tail()}"

    def start_ready(self) -> None:
        """Starts the process, and waits until it is ready."""
        self.start()
        self.wait_ready()

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Waits until the service is ready. Raises AssertionError when it has ended, or at the scaled time-out."""
        wait_until(lambda: not self.running or self.unready_reason() is None, self.log_tail, timeout_s)
        self.assert_ready()

    def terminate(self) -> None:
        """Sends SIGTERM and does not wait."""
        self._started().terminate()

    def wait_end(self, timeout_s: float = 60.0) -> int:
        """Waits until the process ends by itself or after `terminate`, and returns its exit status."""
        try:
            return self._started().wait(scaled(timeout_s))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.package} does not end:\n{self.log_tail()}") from None

    def stop(self, timeout_s: float = 60.0) -> int:
        """Sends SIGTERM, waits until the process has ended, and returns its exit status."""
        self.terminate()
        return self.wait_end(timeout_s)

    def kill(self) -> None:
        """Ends the process at once, as `kill -9` does, but not its children."""
        self._started().kill()
        self._started().wait()

    def pause(self) -> None:
        """Freezes the process (SIGSTOP)."""
        self._started().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused process continue (SIGCONT)."""
        self._started().send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kills the process and everything that it started, if it runs."""
        if self._process is not None and self._process.poll() is None:
            processes.kill_family(self._process.pid)
            self._process.wait()

    def log_tail(self) -> str:
        """Returns the end of the log, for error messages."""
        return processes.tail(self.log_file, TAIL_LINES)

    def _started(self) -> processes.Popen:
        assert self._process is not None, f"{self.package} has not been started"
        return self._process
