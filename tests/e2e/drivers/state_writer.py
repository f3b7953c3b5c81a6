"""Writes states to a keyed topic at a steady rate, and logs each acknowledgement with its time."""

import random
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from confluent_kafka import KafkaError, Message, Producer

from drivers.topic_readers import TOMBSTONE_HEADER
from statecast.state.v1.state_pb2 import StateRecord
from testkit.background import act_at_rate, in_background
from testkit.waiting import scaled

EPOCH = 7
DELETED_SHARE = 0.05
REPLAYED_SHARE = 0.02
TICK_S = 0.01
PayloadOf = Callable[[str, int], bytes]


@dataclass(frozen=True)
class Acknowledged:
    """One record that counts by the fence; `at` is a time of the monotonic clock. `payload` is None in a deletion."""

    at: float
    offset: int
    sequence: int
    payload: bytes | None


class StateLog:
    """One thread notes, any thread asks.

    The acknowledgements of one partition come in the order of its offsets. A record with a sequence no higher
    than that of an earlier one of its key is a replay: it has an offset, and changes nothing.
    """

    def __init__(self) -> None:
        """Knows nothing."""
        self._records: defaultdict[str, list[Acknowledged]] = defaultdict(list)
        self._partitions: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        self.partition_of: dict[str, int] = {}

    def note(self, partition: int, key: str, record: Acknowledged) -> None:
        """Takes an acknowledgement."""
        known = self._records[key]
        if not known or record.sequence > known[-1].sequence:
            known.append(record)
        self._partitions[partition].append((record.at, record.offset))
        self.partition_of[key] = partition

    @property
    def count(self) -> int:
        """How many records there are, replays too."""
        return sum(len(acknowledged) for acknowledged in self._partitions.values())

    def newest(self) -> dict[str, Acknowledged]:
        """Returns the newest record of each key."""
        return {key: records[-1] for key, records in self._records.items()}

    def ends(self) -> dict[int, int]:
        """Returns the last offset of each partition that has one."""
        return {partition: acknowledged[-1][1] for partition, acknowledged in self._partitions.items()}

    def due(self, key: str, before: float) -> Acknowledged | None:
        """Returns the newest record of a key that was acknowledged before a time."""
        records = self._records[key]
        place = bisect_left(records, before, key=lambda record: record.at)
        return records[place - 1] if place else None

    def due_through(self, partition: int, before: float) -> int:
        """Returns the last offset of a partition that was acknowledged before a time; -1 when there is none."""
        acknowledged = self._partitions[partition]
        place = bisect_left(acknowledged, before, key=lambda each: each[0])
        return acknowledged[place - 1][1] if place else -1


def sequence_text(key: str, sequence: int) -> bytes:
    """Returns a payload that contains its sequence, for readers to compare."""
    return f"{sequence} {key}".encode()


def sequence_in(payload: bytes) -> int:
    """Returns the sequence in a payload of `sequence_text`."""
    return int(payload.split(b" ")[0])


def hot_index(chance: random.Random, count: int) -> int:
    """Returns a place among `count`, the lower ones much more often: the first eighth gets half."""
    return int(chance.random() ** 3 * count)


class StateWriter:
    """Writes to one topic with murmur2, as the processor does; `log` has the acknowledged records."""

    def __init__(self, bootstrap: str, topic: str, keys: list[str], payload_of: PayloadOf = sequence_text) -> None:
        """Connects. Records wait through an outage of the broker and are written once each, in their order."""
        self.log = StateLog()
        self.keys = keys
        self.failures: list[str] = []
        self._topic = topic
        self._payload_of = payload_of
        self._sequences: Counter[str] = Counter()
        self._chance = random.Random(topic)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def fill(self) -> None:
        """Writes a first value of every key, and waits until all are acknowledged."""
        for key in self.keys:
            self._write_next(key, deleted=False)
        self.flush()

    def flush(self) -> None:
        """Waits until everything is acknowledged."""
        left = self._producer.flush(scaled(60))

        assert not left, f"{left} records were not acknowledged"
        assert self.failures == []

    @contextmanager
    def writing(self, rate: float) -> Iterator[None]:
        """Writes `rate` records a second on a thread of its own while the context is open; then flushes."""

        def write(done: Event) -> None:
            act_at_rate(done, rate, TICK_S, lambda _: self._write_one(), lambda: self._producer.poll(0))

        with in_background(write):
            yield
        self.flush()

    def _write_one(self) -> None:
        key = self.keys[hot_index(self._chance, len(self.keys))]
        if self._chance.random() < REPLAYED_SHARE:
            self._write(key, self._chance.randint(1, self._sequences[key]), deleted=False)
        else:
            self._write_next(key, deleted=self._chance.random() < DELETED_SHARE)

    def _write_next(self, key: str, *, deleted: bool) -> None:
        self._sequences[key] += 1
        self._write(key, self._sequences[key], deleted=deleted)

    def _write(self, key: str, sequence: int, *, deleted: bool) -> None:
        payload = None if deleted else self._payload_of(key, sequence)
        record = StateRecord(epoch=EPOCH, sequence=sequence, payload=payload or b"")
        record.source.commit_time.FromNanoseconds(time.time_ns())
        encoded = record.SerializeToString()

        def noted(error: KafkaError | None, message: Message) -> None:
            offset, partition = message.offset(), message.partition()
            if error is not None or offset is None or partition is None:
                self.failures.append(f"{key}: {error}")
                return
            self.log.note(partition, key, Acknowledged(time.monotonic(), offset, sequence, payload))

        if payload is None:
            headers: list[tuple[str, str | bytes | None]] = [(TOMBSTONE_HEADER, encoded)]
            self._producer.produce(self._topic, None, key.encode(), headers=headers, on_delivery=noted)
        else:
            self._producer.produce(self._topic, encoded, key.encode(), on_delivery=noted)
