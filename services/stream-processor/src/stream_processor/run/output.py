"""Counts the records that the queries write, and measures their lag, by reading a sample of a topic's newest records.

Spark reports on a real-time query at checkpoints only, and a measurement inside its plan would cost every row and end
before the write. Here the cost is the same at any rate, and a new lag is seen at once.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import structlog
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message, TopicPartition

from statecast_service.kafka import KafkaSettings, connect
from stream_processor.metrics import Metrics
from stream_processor.run.plan import QueryPlan
from stream_processor.run.topics import Topics, state_record
from stream_processor.run.watch import WatchedQuery

log = structlog.get_logger()

MAX_SAMPLE = 50
"""Records of a partition that one look reads at most, the newest ones."""
RECENT_LOOKS = 10
"""Looks that the quantiles for people are taken over."""
READ_TIMEOUT_S = 2.0
"""How long a look waits for its sample; a broker that gives less by then gives less to measure."""

Partition = tuple[str, int]
OutputSample = tuple[dict[str, int], dict[str, list[float]]]
"""By topic: how many records came since the last look, and the lags in seconds of a sample of them."""


class SinkTail:
    """Follows the ends of topics from where they stand at the first look. One thread at a time."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._topics = Topics(kafka)
        self._last_ends: Mapping[Partition, int] = {}
        # The group is never joined: partitions are assigned by hand, and no offset is committed.
        group = {"group.id": "stream-processor-sink-tail", "enable.auto.commit": False}
        tuning = {"fetch.wait.max.ms": 10, "queued.max.messages.kbytes": 1024}
        self._consumer = connect(Consumer, kafka, {**group, **tuning})

    def look(self, names: Collection[str]) -> OutputSample:
        """Returns how many records have come to these topics since the last look, and the lags of a sample of them.

        A lag is from the commit at the source to the moment at which Spark's producer took the record, or at which the
        broker did if the topic says so. May block for some seconds when the broker is slow; raises KafkaException when
        it is gone.
        """
        topics = self._topics.ends_of(names)
        ends = {(name, number): end for name, of_topic in topics.items() for number, end in of_topic.items()}
        last_ends, self._last_ends = self._last_ends, ends
        grown = {partition: end - last_ends.get(partition, end) for partition, end in ends.items()}
        written = dict.fromkeys(names, 0)
        for (topic, _), count in grown.items():
            written[topic] += max(count, 0)
        samples = {partition: min(count, MAX_SAMPLE) for partition, count in grown.items() if count > 0}
        lags: dict[str, list[float]] = {topic: [] for topic in names}
        for message in self._read(samples, ends):
            if (lag := lag_of(message)) is not None:
                lags[cast(str, message.topic())].append(lag)
        return written, lags

    def close(self) -> None:
        self._consumer.close()

    def _read(self, samples: Mapping[Partition, int], ends: Mapping[Partition, int]) -> Iterable[Message]:
        if not samples:
            return []
        starts = [TopicPartition(*partition, ends[partition] - count) for partition, count in samples.items()]
        self._consumer.assign(starts)
        try:
            messages = self._consumer.consume(sum(samples.values()), READ_TIMEOUT_S)
        finally:
            self._consumer.unassign()
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
        return messages


def lag_of(message: Message) -> float | None:
    """Returns the seconds between the commit at the source and the record.

    Returns None for a record that is no StateRecord with a time.
    """
    record, (kind, written_ms) = state_record(message), message.timestamp()
    if record is None or kind == TIMESTAMP_NOT_AVAILABLE or not record.source.HasField("commit_time"):
        return None
    committed = record.source.commit_time
    # Two machines' clocks may differ by more than the way takes.
    return max(written_ms / 1000 - committed.seconds - committed.nanos / 1e9, 0.0)


@dataclass
class Output:
    """Measures the records on the sinks; `sample` is that of SinkTail."""

    sample: Callable[[Collection[str]], OutputSample]
    metrics: Metrics
    _recent: deque[tuple[int, list[float]]] = field(default_factory=lambda: deque(maxlen=RECENT_LOOKS), init=False)

    def look(self, plans: Iterable[QueryPlan]) -> None:
        """Updates the metrics of the queries; a broker that is away for a moment is no reason to stop."""
        writers = {each.sink_topic: each for each in plans}
        try:
            written, lags = self.sample(writers)
        except KafkaException as error:
            log.warning("cannot measure the output", reason=str(error))
            return
        for topic, count in written.items():
            self.metrics.output_rows.labels(writers[topic].name).inc(count)
        # A plain topic has no StateRecords, even if its values look like some.
        sampled = [(each.name, lag) for each in writers.values() if each.shuffles for lag in lags[each.sink_topic]]
        for name, lag in sampled:
            self.metrics.lag.labels(name).observe(lag)
        self._recent.append((sum(written.values()), [lag for _, lag in sampled]))

    @property
    def rate(self) -> float:
        return sum(count for count, _ in self._recent) / max(len(self._recent), 1)

    def quantile(self, share: float) -> float | None:
        """Returns the lag in seconds below which this share of the recent samples lies; None when there is none."""
        lags = sorted(lag for _, sampled in self._recent for lag in sampled)
        return lags[round(share * (len(lags) - 1))] if lags else None


def summary(output: Output, queries: Iterable[WatchedQuery], letters: int, waiting: int, now: float) -> str:
    """Returns the line for people about a process that is ready.

    `letters` are the dead letters that count, `waiting` the records behind open transactions; `now` is in seconds since
    1970.
    """
    running = list(queries)
    checkpoints = [each.checkpointed_at for each in running if each.checkpointed_at is not None]
    parts = [
        f"in {sum(each.input_rate for each in running):,.0f}/s",
        f"out {output.rate:,.0f}/s",
        f"lag p50 {_milliseconds(output.quantile(0.5))}, p99 {_milliseconds(output.quantile(0.99))}",
        f"state {sum(each.state_rows for each in running):,.0f} rows",
        f"checkpoint {now - min(checkpoints):,.0f} s ago" if checkpoints else "no checkpoint yet",
        f"dead letters {letters:,.0f}",
    ]
    if waiting:
        parts.append(f"{waiting:,.0f} records wait behind open transactions")
    return " · ".join(parts)


def _milliseconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1000:,.0f} ms"
