"""One broker, and on it one processor with one pipeline for each measurement."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import yaml
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from bench.processor_load import Load
from bench.processor_sink import Sink
from bench.processor_workload import Bank, Shape
from local_stack import child_process
from local_stack.broker import Broker
from local_stack.ports import free_ports
from stream_processor.testing.process import Processor, wait_until

PARTITIONS = 4
CHECKPOINT_S = 10
"""A sixth of what pipelines ship with, so that a short measurement meets checkpoints too."""
TRIGGERS: dict[str, dict[str, str]] = {
    "realtime": {"mode": "realtime", "checkpoint": f"{CHECKPOINT_S}s"},
    "microbatch": {"mode": "micro-batch", "interval": "100ms"},
}
PIPELINES = Path(__file__).parents[1] / "services" / "stream-processor" / "pipelines"


@dataclass(frozen=True)
class Rig:
    """What one measurement works with; the processor has not been started."""

    directory: Path
    load: Load
    sink: Sink
    processor: Processor

    def start(self) -> None:
        """Starts the processor and waits until it is ready."""
        self.processor.start()
        self.processor.wait_ready()

    def commits_ms(self, pipeline: str) -> list[float]:
        """When each checkpoint of the pipeline was complete, in milliseconds since 1970."""
        commits = self.directory / "checkpoints" / pipeline / "commits"
        files = sorted(commits.glob("[0-9]*"), key=lambda file: int(file.name))
        return [file.stat().st_mtime * 1000 for file in files]

    def cpu_s(self) -> float:
        """The CPU time of the processor's JVM since its start."""
        times = self.processor.jvm().cpu_times()
        return float(times.user + times.system)

    def changelog_bytes(self, pipeline: str) -> int:
        """What the checkpoints of the pipeline hold of its state, as far as they are written change by change."""
        state = self.directory / "checkpoints" / pipeline / "state"
        return sum(file.stat().st_size for file in state.rglob("*.changelog"))


@contextmanager
def broker() -> Iterator[str]:
    """A broker of the benchmark's own; its bootstrap address."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as directory:
        port, controller_port = free_ports(2)
        made = Broker(Path(directory), port, controller_port)
        made.prepare()
        process = child_process.start(made.command(), Path(directory) / "broker.log")
        try:
            wait_until(made.answers, (Path(directory) / "broker.log").read_text)
            yield made.bootstrap
        finally:
            child_process.stop(process.pid)
            process.wait()


@contextmanager
def rig(bootstrap: str, shape: Shape, mode: str, bank: Bank, count: int) -> Iterator[Rig]:
    """Topics, a load of the shape's first `count` changes, and a processor of its pipeline alone."""
    prefix = f"{uuid4().hex[:6]}."
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        [shipped] = PIPELINES.rglob(f"{shape.pipeline}.yaml")
        content = {**yaml.safe_load(shipped.read_text()), "trigger": TRIGGERS[mode]}
        source, sink = (_prefixed(content, section, prefix) for section in ("source", "sink"))
        _create_topics(bootstrap, source, sink)
        file = directory / shipped.name
        file.write_text(yaml.safe_dump(content))
        processor = Processor(directory, bootstrap, free_ports(1)[0], [file])
        reader = Sink(bootstrap, sink)
        try:
            yield Rig(directory, Load(bootstrap, source, bank.changes(shape, count)), reader, processor)
        except (TimeoutError, RuntimeError) as error:
            error.add_note(processor.log[-4000:])
            raise
        finally:
            reader.close()
            _end(processor)


def _prefixed(content: dict[str, dict[str, str]], section: str, prefix: str) -> str:
    content[section]["topic"] = prefix + content[section]["topic"]
    return content[section]["topic"]


def _create_topics(bootstrap: str, source: str, sink: str) -> None:
    """The sink's records are stamped by the broker as they are appended: that is when a reader can have them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "LogAppendTime"}
    new = [
        NewTopic(source, num_partitions=PARTITIONS, replication_factor=1),
        NewTopic(f"{source}.dead-letter", num_partitions=1, replication_factor=1),
        NewTopic(sink, num_partitions=PARTITIONS, replication_factor=1, config=config),
    ]
    for made in admin.create_topics(new).values():
        made.result()


def _end(processor: Processor) -> None:
    processor.end()
    time.sleep(1)  # its JVM ends within a second of it, and must not work beside the next measurement
