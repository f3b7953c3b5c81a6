"""Measures how old changes are when they stand on a keyed topic, by reading a sample of its newest records.

Spark tells of a real-time query at checkpoints only, and a measurement inside its plan would cost every row and end
before the write. Here the cost is the same at any rate, and what is measured is seen at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message, TopicPartition
from google.protobuf.message import DecodeError

from statecast.state.v1.state_pb2 import StateRecord
from stream_processor.operation.topics import PartitionEnds
from stream_processor.steps.sink import TOMBSTONE_HEADER

SAMPLE = 50
"""Records of a partition that one look reads at most, the newest ones."""
READ_S = 2.0
"""How long a look waits for its sample; a broker that gives less by then gives less to measure."""

Partition = tuple[str, int]


class SinkTail:
    """Follows the ends of keyed topics from where they stand at the first look. One thread at a time."""

    def __init__(self, bootstrap: str, topics: Sequence[str], ends: PartitionEnds) -> None:
        self._topics = topics
        self._ends = ends
        self._seen: Mapping[Partition, int] = {}
        # The group is never joined: partitions are assigned by hand, and no offset is committed.
        settings = {"bootstrap.servers": bootstrap, "group.id": "stream-processor-sink-tail", "log_level": 0}
        tuning = {"enable.auto.commit": False, "fetch.wait.max.ms": 10, "queued.max.messages.kbytes": 1024}
        self._consumer = Consumer({**settings, **tuning})

    def look(self) -> tuple[dict[str, int], dict[str, list[float]]]:
        """How many records each topic got since the last look, and the lags in seconds of a sample of them.

        A lag is from the commit at the source to the moment at which Spark's producer took the record, or at which the
        broker did if the topic says so. May block for some seconds when the broker is slow; raises KafkaException when
        it is gone.
        """
        ends = {(topic, number): end for topic in self._topics for number, end in self._ends.ends(topic).items()}
        first, seen, self._seen = not self._seen, self._seen, ends
        if first:
            return {}, {}
        grown = {partition: end - seen.get(partition, end) for partition, end in ends.items()}
        written = dict.fromkeys(self._topics, 0)
        for (topic, _), count in grown.items():
            written[topic] += max(count, 0)
        wanted = {partition: min(count, SAMPLE) for partition, count in grown.items() if count > 0}
        lags: dict[str, list[float]] = {topic: [] for topic in self._topics}
        for message in self._read(wanted, ends):
            lag = lag_of(message)
            if lag is not None:
                lags[cast(str, message.topic())].append(lag)
        return written, lags

    def close(self) -> None:
        """Lets go of the connections."""
        self._consumer.close()

    def _read(self, wanted: Mapping[Partition, int], ends: Mapping[Partition, int]) -> Iterable[Message]:
        if not wanted:
            return []
        starts = [TopicPartition(*partition, ends[partition] - count) for partition, count in wanted.items()]
        self._consumer.assign(starts)
        try:
            messages = self._consumer.consume(sum(wanted.values()), READ_S)
        finally:
            self._consumer.unassign()
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
        return messages


def lag_of(message: Message) -> float | None:
    """The seconds between the commit at the source and the record; None for what is no StateRecord with a time."""
    value = message.value()
    headers = cast(list[tuple[str, bytes]], message.headers() or [])
    encoded = dict(headers).get(TOMBSTONE_HEADER) if value is None else value
    kind, written_ms = message.timestamp()
    if encoded is None or kind == TIMESTAMP_NOT_AVAILABLE:
        return None
    try:
        record = StateRecord.FromString(encoded)
    except DecodeError:
        return None
    committed = record.source.commit_time
    if not record.source.HasField("commit_time"):
        return None
    # Two machines' clocks may differ by more than the way takes.
    return max(written_ms / 1000 - committed.seconds - committed.nanos / 1e9, 0.0)
