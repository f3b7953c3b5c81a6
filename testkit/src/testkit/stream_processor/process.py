"""Drives a real `stream-processor run`, and reads the records that it wrote."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import psutil
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from testkit import waiting
from testkit.service_process import ServiceProcess

TIMEOUT_S = 240.0
"""Starting Spark, and the output until its next checkpoint, may take minutes on a busy machine."""

wait_until = partial(waiting.wait_until, timeout_s=TIMEOUT_S, interval_s=0.1)


class Processor(ServiceProcess):
    """One process at a time, over restarts, with one checkpoint directory and one log below `directory`."""

    def __init__(self, directory: Path, bootstrap: str, port: int, files: Iterable[Path], **settings: str) -> None:
        own = {"kafka_bootstrap": bootstrap, "checkpoints": directory / "checkpoints", "metrics_port": port}
        super().__init__("stream_processor", {**own, **settings}, directory / "log", port, [*map(str, files)])

    @override
    def wait_ready(self, timeout_s: float = TIMEOUT_S) -> None:
        super().wait_ready(timeout_s)

    @override
    def wait_end(self, timeout_s: float = TIMEOUT_S) -> int:
        return super().wait_end(timeout_s)

    @override
    def stop(self, timeout_s: float = TIMEOUT_S) -> int:
        """Stops it as others do, once each record that a pipeline has read has ended in one way."""
        wait_until(lambda: not self.unequal_counts(), lambda: f"read and ended: {self.unequal_counts()}")
        return super().stop(timeout_s)

    def unequal_counts(self) -> dict[str, tuple[float, float]]:
        """Returns how many records each pipeline has read and how many of them have ended, where these differ."""
        read, ended = dict[str, float](), defaultdict[str, float](float)
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                if sample.name == "stream_processor_input_rows_total":
                    read[sample.labels["query"]] = sample.value
                elif sample.name == "stream_processor_records_total":
                    ended[sample.labels["pipeline"]] += sample.value
        return {name: (read[name], count) for name, count in ended.items() if read[name] != count}

    @override
    def kill(self) -> None:
        """Kills the driver with SIGKILL and waits until its JVM is gone too, which ends by itself."""
        jvm = self.jvm()
        super().kill()
        wait_until(lambda: not jvm.is_running(), f"the JVM {jvm} lives on")

    def jvm(self) -> psutil.Process:
        """Returns Spark's JVM."""
        children = psutil.Process(self.pid).children(recursive=True)
        return next(child for child in children if child.name() == "java")


ProcessorOf = Callable[..., Processor]
"""Makes a processor of pipelines, with settings of its own."""
