"""Reads the dead letters of a topic, and stops the pipelines when there are too many."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from statecast_service.kafka import KafkaSettings, connect
from stream_processor.definition.pipeline import Pipeline, dead_letter_topic
from stream_processor.errors import DeadLetterLimitError
from stream_processor.metrics import Metrics
from stream_processor.operation.checkpoints import Checkpoints
from stream_processor.steps.dead_letters import OFFSET, PARTITION, REASON, TOPIC, TRUNCATED

READER_GROUP = "stream-processor-replay"
"""Only named because Kafka's client needs one: no offset is ever committed to it."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter: where it stands, and the original record with the headers of both."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    @property
    def origin(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset of the original record; None when the headers do not say."""
        try:
            return self._text(TOPIC), int(self._text(PARTITION)), int(self._text(OFFSET))
        except ValueError:
            return None

    @property
    def reason(self) -> str:
        """Why it was set aside; empty when the headers do not say."""
        return self._text(REASON)

    @property
    def truncated(self) -> bool:
        return TRUNCATED in dict(self.headers)

    def _text(self, name: str) -> str:
        """The header's last value, which is ours: those of the original stand before it."""
        return (dict(self.headers).get(name) or b"").decode(errors="replace")


def read_dead_letters(
    kafka: KafkaSettings, topic: str, starts: Mapping[int, int], timeout_s: float = 10.0
) -> Iterator[DeadLetter]:
    """Every letter from `starts`, by default the first, to the ends of now, in order. Raises KafkaException."""
    group = {"group.id": READER_GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = connect(Consumer, kafka, {**group, "enable.partition.eof": True})
    try:
        for number in consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=timeout_s)
            consumer.assign([TopicPartition(topic, number, starts.get(number, OFFSET_BEGINNING))])
            # The only error that comes as a message is the end of the partition.
            while (message := _poll(consumer, timeout_s)).error() is None and cast(int, message.offset()) < end:
                headers = cast(list[Header], message.headers() or [])
                yield DeadLetter(number, cast(int, message.offset()), message.key(), message.value(), tuple(headers))
    finally:
        consumer.close()


def _poll(consumer: Consumer, timeout_s: float) -> Message:
    message = consumer.poll(timeout_s)
    if message is None:
        raise KafkaException(f"no answer from Kafka within {timeout_s} s")
    return message


class DeadLetterLimits:
    """Counts the dead letters of each source topic by the end of their topic, against the lowest limit of the files.

    They count from the first start, over restarts: a process that starts again after the limit stops again at once,
    and does not set aside another thousand records each time. `accept` begins a new count.
    """

    def __init__(self, pipelines: Sequence[Pipeline], end: Callable[[str], int], notes: Checkpoints) -> None:
        self.by_topic: dict[str, int] = {}
        for each in pipelines:
            topic, limit = dead_letter_topic(each.source_topic), each.definition.dead_letters.limit
            self.by_topic[topic] = min(limit, self.by_topic.get(topic, limit))
        self._end = end
        self._notes = notes

    def check(self, metrics: Metrics) -> None:
        """Raises DeadLetterLimitError when there are too many."""
        for topic, limit in self.by_topic.items():
            end, note_name = self._end(topic), f"{topic}.accepted.json"
            note = self._notes.read(note_name)
            if note is None:
                note = {"end": end}
                self._notes.replace(note_name, note)
            # An end before the accepted one: the topic was recreated.
            count = end - note["end"] if end >= note["end"] else end
            metrics.dead_letters.labels(topic).set(count)
            if count > limit:
                raise DeadLetterLimitError(
                    f"{count} dead letters on {topic}, the limit is {limit}: read their statecast-reason headers, mend "
                    "the source or the pipeline, then run `stream-processor accept-dead-letters FILE...`"
                )

    def accept(self, topic: str) -> int:
        """Counts from now on; returns the end of the topic, which is the new beginning."""
        end = self._end(topic)
        self._notes.replace(f"{topic}.accepted.json", {"end": end})
        return end
