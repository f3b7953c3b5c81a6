"""Writes states to a keyed topic at a steady rate: new values, deletions, and now and then a replay."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from confluent_kafka import KafkaError, Message, Producer

from drivers.keyed_topic import TOMBSTONE_HEADER
from drivers.meanwhile import act_at_rate, meanwhile
from drivers.state_log import Acknowledged, StateLog
from drivers.waiting import scaled
from statecast.state.v1.state_pb2 import StateRecord

EPOCH = 7
DELETED_SHARE = 0.05
REPLAYED_SHARE = 0.02
TICK_S = 0.01

PayloadOf = Callable[[str, int], bytes]


def sequence_text(key: str, sequence: int) -> bytes:
    """A payload that tells what it is: readers compare sequences by it."""
    return f"{sequence} {key}".encode()


def sequence_in(payload: bytes) -> int:
    """The sequence in a payload of `sequence_text`."""
    return int(payload.split(b" ")[0])


def hot_index(chance: random.Random, count: int) -> int:
    """A place among `count`, the lower ones much more often: the first eighth gets half."""
    return int(chance.random() ** 3 * count)


class StateWriter:
    """Writes to one topic with murmur2, as the processor does; `log` has what was acknowledged."""

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

        with meanwhile(write):
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
