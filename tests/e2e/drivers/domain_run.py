"""Runs one domain: its simulator and its pipelines, each as the process that a user would start."""

import sys
from collections.abc import Sequence
from pathlib import Path

from testkit import processes
from testkit.ports import free_port
from testkit.service_process import ServiceProcess
from testkit.waiting import scaled

REPOSITORY = Path(__file__).parents[3]
PIPELINES = REPOSITORY / "domains"
START_S = 240


class DomainRun:
    """The processes of one domain on a broker; logs and data go below `directory`."""

    def __init__(self, directory: Path, bootstrap: str, domain: str, pipelines: Sequence[str]) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._domain = domain
        self._files = [str(next(PIPELINES.rglob(f"{name}.yaml"))) for name in pipelines]
        self._processor: ServiceProcess | None = None

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
            CDC_SIMULATOR_METRICS_PORT=str(free_port()),
            CDC_SIMULATOR_LIMIT=str(changes),
            CDC_SIMULATOR_RATE=str(rate),
        )

    def start_processor(self) -> None:
        """Starts the pipelines and returns when they run."""
        settings = {
            "kafka_bootstrap": self._bootstrap,
            "checkpoints": self._directory / "checkpoints",
            "checkpoint_interval": "10s",
            "driver_memory": "3g",
            "metrics_port": (port := free_port()),
        }
        log_file = self._directory / "stream_processor.log"
        self._processor = ServiceProcess("stream_processor", settings, log_file, port, self._files)
        self._processor.start()
        self._processor.wait_ready(START_S)

    def stop(self) -> None:
        """Ends the pipelines, if they run."""
        if self._processor is not None:
            self._processor.stop()
            self._processor = None

    def _run_to_end(self, package: str, *arguments: str, **environment: str) -> None:
        log_file = self._directory / f"{package}.log"
        process = processes.start([sys.executable, "-m", package, *arguments], log_file, environment)
        try:
            status = process.wait(scaled(300))
        finally:
            processes.stop(process.pid)
        assert status == 0, processes.tail(log_file, 40)
