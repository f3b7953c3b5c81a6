"""One broker, and on it for each measurement a processor: with one pipeline, its load and a reader, or with many."""

import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.processor_workload import Bank, Sent, Shape
from statecast_domains import pipeline_file
from statecast_domains.derivation import DEAD_LETTER, derive
from statecast_domains.directories import pipeline_files
from statecast_domains.domain import read_domains
from testkit.ports import free_ports
from testkit.stream_processor.pipeline_files import write_prefixed
from testkit.stream_processor.process import Processor
from testkit.topics import create_topic

PAUSE_S = 0.002
PORTION = 500_000  # the producer holds no more of records that are sent at full speed
MIN_SHARE = 0.95  # of the rate asked for; a sender that falls behind measures itself


class Load:
    """Sends the changes in their order, some at a time."""

    def __init__(self, bootstrap: str, topic: str, changes: Sequence[Sent]) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "linger.ms": 1,
                "queue.buffering.max.messages": 2_000_000,
                "queue.buffering.max.kbytes": 2_000_000,
            }
        )
        self._topic = topic
        self._changes = changes
        self.sent_ms = array("d")
        """When each change was handed to the producer, by its index; in milliseconds since 1970."""

    def send_at(self, rate: int, seconds: float) -> None:
        """Sends `rate` changes a second for so long. Raises RuntimeError when it falls behind or has no more."""
        first, started = len(self.sent_ms), time.monotonic()
        total = round(rate * seconds)
        while (done := len(self.sent_ms) - first) < total:
            elapsed = time.monotonic() - started
            self._send(min(round(elapsed * rate), total) - done)
            self._producer.poll(0)
            time.sleep(PAUSE_S)
        reached = total / (time.monotonic() - started)
        if reached < rate * MIN_SHARE:
            raise RuntimeError(f"the load reached {reached:.0f} of {rate} changes/s: is the machine busy?")

    def send_all(self, count: int) -> None:
        """Sends so many changes as fast as it can, and waits until Kafka has them."""
        for done in range(0, count, PORTION):
            self._send(min(PORTION, count - done))
            self._producer.flush()

    def _send(self, count: int) -> None:
        first = len(self.sent_ms)
        if first + count > len(self._changes):
            raise RuntimeError(f"{len(self._changes)} changes were made, {first + count} are needed")
        for key, value in self._changes[first : first + count]:
            self.sent_ms.append(time.time() * 1000)
            self._producer.produce(self._topic, key=key, value=value)


TOMBSTONE_HEADER = "statecast-state-record"
SILENT_S = 120.0
LOOK_S = 0.25


class Sink:
    """Follows the topic from its beginning; appends are stamped by the broker, so it may read as late as it likes."""

    def __init__(self, bootstrap: str, topic: str, index_of: Callable[[bytes], int]) -> None:
        self._index_of = index_of
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 50, "queued.min.messages": 1000}
        )
        self._topic = topic
        self.at_ms: dict[int, float] = {}
        """Index of a change → when the last record that it is the newest source of was appended."""
        self.times_ms: dict[int, list[float]] = {}
        """Partition → when its records were appended, in order."""

    def read_until(self, complete: Callable[[], bool]) -> None:
        """Reads until the condition holds. Raises TimeoutError when nothing new comes for so long."""
        self._assign()
        last_record_s = time.monotonic()
        while not complete():
            records = self._consumer.consume(5_000, timeout=0.2)
            if records:
                last_record_s = time.monotonic()
            elif time.monotonic() - last_record_s > SILENT_S:
                raise TimeoutError(f"{self._topic}: no new record for {SILENT_S:g} s, and changes are missing")
            for record in records:
                self._take(record.value(), record.headers(), record.partition(), record.timestamp()[1])

    def close(self) -> None:
        self._consumer.close()

    def _assign(self) -> None:
        if self._consumer.assignment():
            return
        partitions = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        self._consumer.assign([TopicPartition(self._topic, each, 0) for each in partitions])

    def _take(self, value: bytes | None, headers: object, partition: int | None, stamp_ms: int) -> None:
        if value is None:
            assert isinstance(headers, list)
            value = next(bytes(content) for name, content in headers if name == TOMBSTONE_HEADER)
        self.at_ms[self._index_of(value)] = stamp_ms
        self.times_ms.setdefault(partition or 0, []).append(stamp_ms)


PARTITIONS = 4
CHECKPOINT_S = 10  # a sixth of the shipped pipelines' interval, so that a short measurement meets checkpoints too
TRIGGERS: dict[str, dict[str, str]] = {
    "realtime": {"mode": "realtime", "checkpoint": f"{CHECKPOINT_S}s"},
    "microbatch": {"mode": "micro-batch", "interval": "100ms"},
}
PIPELINES = Path(__file__).parents[1] / "domains"
WRITTEN = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
"""Of a topic that a pipeline writes. The broker stamps records as it appends them, when readers can have them."""


@dataclass(frozen=True)
class Rig:
    """The parts of one measurement; the processor has not been started."""

    shape: Shape
    directory: Path
    load: Load
    sink: Sink
    processor: Processor

    def start(self) -> None:
        """Starts the processor and waits until it is ready."""
        self.processor.start()
        self.processor.wait_ready()

    def read(self) -> None:
        """Reads the sink until nothing that was sent is missing. Raises TimeoutError when something stays so.

        A batch may write the newest of several changes of a row or group only, so the newest of each must come.
        """
        newest: dict[str, int] = {}
        for index in range(len(self.load.sent_ms)):
            newest.update(dict.fromkeys(self.shape.written(index), index))
        missing = set(newest.values())

        def complete() -> bool:
            missing.difference_update([index for index in missing if index in self.sink.at_ms])
            return not missing

        self.sink.read_until(complete)

    def commits_ms(self) -> list[float]:
        """Returns when each checkpoint of the shape's pipelines was complete, in milliseconds since 1970."""
        files = [file for each in self._checkpoints for file in (each / "commits").glob("[0-9]*")]
        return sorted(file.stat().st_mtime * 1000 for file in files)

    def cpu_s(self) -> float:
        times = self.processor.jvm().cpu_times()
        return float(times.user + times.system)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Spark's JVM stands still in the block, and finds the changes that were sent meanwhile after it."""
        jvm = self.processor.jvm()
        jvm.suspend()
        try:
            yield
        finally:
            jvm.resume()

    def work_off(self) -> list[tuple[float, float]]:
        """Waits until a checkpoint of the processor holds all that was sent.

        Returns the time in milliseconds since 1970 and the CPU seconds used by then, at each look. Raises
        TimeoutError when nothing more is read for SILENT_S.
        """
        used: list[tuple[float, float]] = []
        query, sent = self.shape.pipelines[0], len(self.load.sent_ms)
        read, since_s = 0.0, time.monotonic()
        while read < sent:
            if time.monotonic() - since_s > SILENT_S:
                raise TimeoutError(f"{query} has read {read:.0f} of {sent} changes, and no more for {SILENT_S:g} s")
            time.sleep(LOOK_S)
            used.append((time.time() * 1000, self.cpu_s()))
            before, read = read, self.processor.metric("stream_processor_input_rows_total", query=query)
            since_s = since_s if read == before else time.monotonic()
        return used

    def changelog_bytes(self) -> int:
        """Returns the bytes of the state in the shape's checkpoints, as far as they are written change by change."""
        files = [file for each in self._checkpoints for file in (each / "state").rglob("*.changelog")]
        return sum(file.stat().st_size for file in files)

    @property
    def _checkpoints(self) -> list[Path]:
        return [self.directory / "checkpoints" / name for name in self.shape.pipelines]


def _files(shape: Shape, mode: str, directory: Path) -> list[Path]:
    """Returns the shape's pipelines, with their topics after a prefix of their own, in the order of the data."""
    prefix, files = f"{uuid4().hex[:6]}.", []
    for name in shape.pipelines:
        [shipped] = PIPELINES.rglob(f"{name}.yaml")
        replaced = shape.replaced if name == shape.pipeline else shape.table_replaced
        content = {**yaml.safe_load(shipped.read_text()), **replaced, "trigger": TRIGGERS[mode]}
        files.append(write_prefixed(directory / shipped.name, content, prefix))
    return files


@contextmanager
def rig(bootstrap: str, shape: Shape, mode: str, bank: Bank, count: int) -> Iterator[Rig]:
    """Topics, a load of the shape's first `count` changes, and a processor of its pipelines alone."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        files = _files(shape, mode, directory)
        pipelines = [pipeline_file.read(file) for file in files]
        source, sink = pipelines[0].source.topic, pipelines[-1].sink.topic
        read = {each.topic for pipeline in pipelines for each in pipeline.sources.values()}
        create_topic(bootstrap, source, PARTITIONS)
        for topic in (read | {pipeline.sink.topic for pipeline in pipelines}) - {source}:
            create_topic(bootstrap, topic, PARTITIONS, WRITTEN)
        for topic in read:
            create_topic(bootstrap, f"{topic}{DEAD_LETTER}", 1)
        processor = Processor(directory, bootstrap, free_ports(1)[0], files)
        reader = Sink(bootstrap, sink, shape.index_of)
        try:
            yield Rig(shape, directory, Load(bootstrap, source, bank.changes(shape, count)), reader, processor)
        except (TimeoutError, RuntimeError) as error:
            error.add_note(processor.log[-4000:])
            raise
        finally:
            reader.close()
            processor.close()
            time.sleep(1)  # its JVM ends within a second of it, and must not work beside the next measurement


@contextmanager
def empty_pipelines(bootstrap: str, count: int) -> Iterator[Processor]:
    """Yields a processor, not started, of the first `count` shipped pipelines, as they are; their topics are empty."""
    files = pipeline_files([PIPELINES])[:count]
    if len(files) < count:
        raise RuntimeError(f"{count} pipelines were asked for, {len(files)} ship")
    existing = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"}).list_topics(timeout=10).topics
    for topic in derive(read_domains([PIPELINES])).topics:
        if topic.name not in existing:
            create_topic(bootstrap, topic.name, topic.partitions, topic.config)
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        processor = Processor(Path(temporary), bootstrap, free_ports(1)[0], files)
        try:
            yield processor
        finally:
            processor.close()
            time.sleep(1)  # its JVM ends within a second of it, and must not work beside the next measurement
