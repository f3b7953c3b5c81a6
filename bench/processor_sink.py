"""Reads a keyed topic back: which change each record comes from, and when the broker appended it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from statecast.state.v1.state_pb2 import StateRecord

TOMBSTONE_HEADER = "statecast-state-record"
PATIENCE_S = 120.0


@dataclass
class Appended:
    """What the records read so far tell."""

    at_ms: dict[int, float] = field(default_factory=dict)
    """Index of a change → when the last record that it is the newest source of was appended."""
    times_ms: dict[int, list[float]] = field(default_factory=dict)
    """Partition → when its records were appended, in order."""


class Sink:
    """Follows the topic from its beginning; appends are stamped by the broker, so it may read as late as it likes."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 50, "queued.min.messages": 1000}
        )
        self._topic = topic
        self._assigned = False
        self.appended = Appended()

    def read_until(self, complete: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Reads until the condition holds. Raises TimeoutError when nothing new comes for so long."""
        self._assign()
        heard = time.monotonic()
        while not complete():
            records = self._consumer.consume(5_000, timeout=0.2)
            if records:
                heard = time.monotonic()
            elif time.monotonic() - heard > patience_s:
                raise TimeoutError(f"{self._topic}: no new record for {patience_s:g} s, and changes are missing")
            for record in records:
                self._take(record.value(), record.headers(), record.partition(), record.timestamp()[1])

    def wait_until_quiet(self, seconds: float = 3.0) -> None:
        """Waits until the topic has records and gets no more for so long, without reading them."""
        self._assign()
        end, since = 0, time.monotonic()
        while end == 0 or time.monotonic() - since < seconds:
            time.sleep(0.25)
            found = self._end()
            if found != end:
                end, since = found, time.monotonic()

    def close(self) -> None:
        """Reads no more."""
        self._consumer.close()

    def _end(self) -> int:
        assigned = self._consumer.assignment()
        return sum(self._consumer.get_watermark_offsets(each, timeout=10)[1] for each in assigned)

    def _assign(self) -> None:
        if self._assigned:
            return
        partitions = self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions
        self._consumer.assign([TopicPartition(self._topic, each, 0) for each in partitions])
        self._assigned = True

    def _take(self, value: bytes | None, headers: object, partition: int | None, stamp_ms: int) -> None:
        if value is None:
            assert isinstance(headers, list)
            value = next(bytes(content) for name, content in headers if name == TOMBSTONE_HEADER)
        change = StateRecord.FromString(value).source.log_sequence_number - 1
        self.appended.at_ms[change] = stamp_ms
        self.appended.times_ms.setdefault(partition or 0, []).append(stamp_ms)
