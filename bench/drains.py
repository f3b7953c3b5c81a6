"""Measures how fast a backlog of changes is worked off, by the stream-processor and by Kafka Streams."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
from confluent_kafka import Consumer, TopicPartition

from bench.peer_systems import PEER, PeerCluster, peer_cluster, runs
from bench.processor_rig import LOOK_S, PARTITIONS, SILENT_S, Load, Rig, rig
from bench.processor_workload import ROWS, SHAPES, Bank, Shape
from testkit.topics import create_topic

BACKLOG = 2_000_000
PATIENT = PEER / "patient.properties"
STORE_TOPIC = "states-changelog"
"""The end of the name of the topic that has each row and group of the peer's store."""


@dataclass(frozen=True)
class Drain:
    """How fast a backlog went, and the CPU that its worker took for each change of it."""

    changes_per_s: int
    cpu_us: float


def drain_ours(bootstrap: str, name: str, mode: str, bank: Bank, backlog: int = BACKLOG) -> Drain:
    """Works off a backlog by the shipped pipeline of the shape, from its first record to its last.

    Its JVM stands still while the backlog is sent. The CPU is that of the JVM from then on until the last record;
    unlike the rate it says something on a busy machine too. Raises TimeoutError when nothing is read any more.
    """
    with rig(bootstrap, SHAPES[name], mode, bank, ROWS + backlog) as bench_rig:
        prepare(bench_rig)
        with bench_rig.frozen():
            bench_rig.load.send_all(backlog)
            resumed_ms, before_s = time.time() * 1000, bench_rig.cpu_s()
        # Reading the output meanwhile would take a core from it.
        used = bench_rig.work_off()
        bench_rig.read()
        stamps = [stamp for times in bench_rig.sink.times_ms.values() for stamp in times if stamp >= resumed_ms]
        return _drain(backlog, stamps, used, before_s)


def drain_peer(bootstrap: str, directory: Path, name: str, topology: str, bank: Bank, backlog: int = BACKLOG) -> Drain:
    """Works off the same changes by one instance of Kafka Streams, from the first record of its changelog to the last.

    Raises TimeoutError when its changelog does not grow any more.
    """
    shape, source = SHAPES[name], f"{name}-{uuid4().hex[:8]}"
    create_topic(bootstrap, source, PARTITIONS)
    load = Load(bootstrap, source, bank.changes(shape, ROWS + backlog))
    with peer_cluster(bootstrap, directory, source, topology, [PATIENT]) as cluster:
        load.send_all(ROWS)
        cluster.add("peer-1")
        changelog = _Changelog(bootstrap, cluster)
        changelog.wait(_records(shape, 0, ROWS))
        process = psutil.Process(cluster.instances["peer-1"].pid)
        with _frozen(process):
            load.send_all(backlog)
            began, before_s = changelog.ends(), _cpu_s(process)
        used: list[tuple[float, float]] = []
        total = _records(shape, 0, ROWS + backlog)
        changelog.wait(total, lambda: used.append((time.time() * 1000, _cpu_s(process))))
        return _drain(backlog, changelog.times_ms(began), used, before_s)


def prepare(bench_rig: Rig) -> None:
    """Starts the processor, and waits until it has each row once."""
    bench_rig.start()
    bench_rig.load.send_all(ROWS)
    bench_rig.read()


def _drain(backlog: int, stamps_ms: Sequence[float], used: Sequence[tuple[float, float]], before_s: float) -> Drain:
    rate = round(backlog * 1000 / (max(stamps_ms) - min(stamps_ms)))
    used_s = next(cpu_s for at_ms, cpu_s in used if at_ms >= max(stamps_ms)) - before_s
    return Drain(rate, round(used_s * 1e6 / backlog, 1))


def _records(shape: Shape, first: int, end: int) -> int:
    """Counts the records that changes make in the peer's changelog: a row that moves makes one for either group."""
    return sum(len(set(shape.written(index))) for index in range(first, end))


class _Changelog:
    """The topic behind the peer's store, with a record for each change of a row or group."""

    def __init__(self, bootstrap: str, cluster: PeerCluster) -> None:
        self._cluster = cluster
        self._topic = f"{cluster.application}-{STORE_TOPIC}"
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
        self._partitions = [TopicPartition(self._topic, partition) for partition in range(PARTITIONS)]

    def ends(self) -> list[int]:
        """Returns the offset after the last record of each partition; 0 of a topic that is not there yet."""
        if self._topic not in self._consumer.list_topics(timeout=10).topics:
            return [0] * PARTITIONS
        return [self._consumer.get_watermark_offsets(each, timeout=10)[1] for each in self._partitions]

    def wait(self, records: int, look: Callable[[], object] = lambda: None) -> None:
        """Waits until it has so many records, and calls `look` each time that it looks.

        Raises RuntimeError when an instance has ended, and TimeoutError when no record comes any more.
        """
        count, since_s = 0, time.monotonic()
        while count < records:
            if time.monotonic() - since_s > SILENT_S:
                raise TimeoutError(f"{self._topic} has {count} of {records} records, and no more for {SILENT_S:g} s")
            time.sleep(LOOK_S)
            for instance in self._cluster.instances.values():
                runs(instance)
            before, count = count, sum(self.ends())
            look()
            since_s = since_s if count == before else time.monotonic()

    def times_ms(self, began: Sequence[int]) -> list[float]:
        """Returns when each record since these offsets was appended."""
        left = sum(self.ends()) - sum(began)
        positions = zip(range(PARTITIONS), began, strict=True)
        self._consumer.assign([TopicPartition(self._topic, partition, offset) for partition, offset in positions])
        times: list[float] = []
        while len(times) < left:
            times += [record.timestamp()[1] for record in self._consumer.consume(5_000, timeout=5.0)]
        self._consumer.close()
        return times


@contextmanager
def _frozen(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
