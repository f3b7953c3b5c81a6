"""Measures many shipped pipelines while little happens: the simulators of their domains send their usual changes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from bench.processor_rig import PIPELINES, empty_pipelines
from bench.results import Metric, combine, percentiles
from cdc_simulator.domains import domain_names
from statecast_domains import pipeline_file
from statecast_domains.directories import pipeline_files
from stream_processor.run.output import lag_of
from stream_processor.run.topics import Topics, read_records
from stream_processor.settings import Settings
from testkit.ports import free_ports
from testkit.service_process import ServiceProcess
from testkit.stream_processor.process import Processor

RATE = 50
"""Changes a second of each simulator, which is its default: 250 of the five."""
SETTLE_S = 30.0
"""From the first changes on; the simulators begin with a snapshot of their tables."""
WINDOW_S = 20.0
RUNS = 3


def at_rest(bootstrap: str, count: int) -> list[Metric]:
    """Measures the CPU and memory of the first `count` shipped pipelines in each of RUNS windows, and their lag.

    CPU and resident memory are those of the processor and its JVM. A lag is from the commit at the source to the
    record on a keyed topic.
    """
    with TemporaryDirectory(prefix="statecast-bench-") as directory, empty_pipelines(bootstrap, count) as processor:
        processor.start()
        processor.wait_ready()
        with _simulators(bootstrap, Path(directory)):
            time.sleep(SETTLE_S)
            slots = processor.metric("stream_processor_task_slots")
            runs = [_window(bootstrap, processor, _keyed_topics(count), f".{count}") for _ in range(RUNS)]
        return combine([*runs, {f"slots.{count}": slots}])


@contextmanager
def _simulators(bootstrap: str, directory: Path) -> Iterator[None]:
    """Yields the simulator of each domain, with its database in `directory`."""
    with ExitStack() as running:
        names = domain_names()
        for domain, port in zip(names, free_ports(len(names)), strict=True):
            settings = {
                "kafka_bootstrap": bootstrap,
                "domain": domain,
                "rate": RATE,
                "database": directory / f"{domain}.sqlite3",
                "metrics_port": port,
            }
            simulator = running.enter_context(
                ServiceProcess("cdc_simulator", settings, directory / f"{domain}.log", port)
            )
            simulator.start()
        yield


def _keyed_topics(count: int) -> list[str]:
    files = [pipeline_file.read(file) for file in pipeline_files([PIPELINES])[:count]]
    return [file.sink.topic for file in files if file.keep.shape != "route"]


def _window(bootstrap: str, processor: Processor, topics: Sequence[str], suffix: str) -> dict[str, float]:
    kafka = Settings(kafka_bootstrap=bootstrap)
    ends = {topic: Topics(kafka).ends(topic) for topic in topics}
    processes = [psutil.Process(processor.pid), processor.jvm()]
    began_s, used_s = time.monotonic(), _cpu_s(processes)
    time.sleep(WINDOW_S)
    cores = (_cpu_s(processes) - used_s) / (time.monotonic() - began_s)
    resident = sum(each.memory_info().rss for each in processes)
    records = (record for topic in topics for record in read_records(kafka, topic, ends[topic]))
    lags_ms = [lag * 1000 for record in records if (lag := lag_of(record)) is not None]
    return {
        f"rest_cores{suffix}": round(cores, 2),
        f"rest_rss_mb{suffix}": round(resident / 2**20),
        f"rest_lag_ms_p99{suffix}": percentiles("lag", lags_ms)["lag_p99"],
    }


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return float(sum(each.user + each.system for each in times))
