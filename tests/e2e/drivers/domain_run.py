"""Runs one domain: its simulator and its pipelines, each as the process that a user would start."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from drivers.waiting import eventually, scaled
from local_stack import child_process
from local_stack.ports import free_ports

REPOSITORY = Path(__file__).parents[3]
PIPELINES = REPOSITORY / "services" / "stream-processor" / "pipelines"
START_S = 240


class DomainRun:
    """The processes of one domain on a broker; logs and data go below `directory`."""

    def __init__(self, directory: Path, bootstrap: str, domain: str, pipelines: Sequence[str]) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._domain = domain
        self._files = [str(next(PIPELINES.rglob(f"{name}.yaml"))) for name in pipelines]
        self._port, self._source_port = free_ports(2)
        self._processor: subprocess.Popen[bytes] | None = None

    def create_topics(self) -> None:
        """Creates every topic of the topics file that is not there."""
        file = str(REPOSITORY / "infra" / "kafka" / "topics.yaml")
        self._run_to_end("kafka_topics", file, "--bootstrap-server", self._bootstrap)

    def change(self, changes: int, rate: float) -> None:
        """Lets the source make so many changes beside its snapshot, and returns when Kafka has them all."""
        self._run_to_end(
            "cdc_simulator",
            "run",
            CDC_SIMULATOR_DOMAIN=self._domain,
            CDC_SIMULATOR_KAFKA_BOOTSTRAP=self._bootstrap,
            CDC_SIMULATOR_DATABASE=str(self._directory / "source.sqlite3"),
            CDC_SIMULATOR_METRICS_PORT=str(self._source_port),
            CDC_SIMULATOR_LIMIT=str(changes),
            CDC_SIMULATOR_RATE=str(rate),
        )

    def start_processor(self) -> None:
        """Starts the pipelines and returns when they run."""
        self._processor = child_process.start(
            [sys.executable, "-m", "stream_processor", "run", *self._files],
            self._directory / "stream_processor.log",
            {
                "STREAM_PROCESSOR_KAFKA_BOOTSTRAP": self._bootstrap,
                "STREAM_PROCESSOR_CHECKPOINTS": str(self._directory / "checkpoints"),
                "STREAM_PROCESSOR_CHECKPOINT_INTERVAL": "10s",
                "STREAM_PROCESSOR_DRIVER_MEMORY": "3g",
                "STREAM_PROCESSOR_METRICS_PORT": str(self._port),
            },
        )
        eventually(self._is_ready, timeout_s=START_S)

    def stop(self) -> None:
        """Ends the pipelines, if they run."""
        if self._processor is not None:
            child_process.stop(self._processor.pid)
            self._processor.wait()
            self._processor = None

    def _is_ready(self) -> None:
        if self._processor is None or self._processor.poll() is not None:
            raise RuntimeError(f"the pipelines ended: {self._log('stream_processor')}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5):
                return
        except urllib.error.URLError as error:
            raise AssertionError(f"the pipelines are not ready: {error}") from error

    def _run_to_end(self, package: str, *arguments: str, **environment: str) -> None:
        log = self._directory / f"{package}.log"
        process = child_process.start([sys.executable, "-m", package, *arguments], log, environment)
        try:
            status = process.wait(scaled(300))
        finally:
            child_process.stop(process.pid)
        assert status == 0, self._log(package)

    def _log(self, package: str) -> str:
        return (self._directory / f"{package}.log").read_text()[-4000:]
