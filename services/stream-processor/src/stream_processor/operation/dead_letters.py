"""Reads the dead letters of a topic, and stops the pipelines when there are too many."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from statecast_service.kafka import KafkaSettings
from stream_processor.definition.pipeline import Pipeline, dead_letter_topic
from stream_processor.errors import DeadLetterLimitError
from stream_processor.metrics import Metrics
from stream_processor.operation.checkpoints import Checkpoints
from stream_processor.operation.topics import read_records
from stream_processor.steps.dead_letters import OFFSET, PARTITION, REASON, TOPIC, TRUNCATED

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


def read_dead_letters(kafka: KafkaSettings, topic: str, starts: Mapping[int, int]) -> Iterator[DeadLetter]:
    """Every letter from `starts`, by default the first, to the ends of now, in order. Raises KafkaException."""
    for message in read_records(kafka, topic, starts):
        headers = cast(list[Header], message.headers() or [])
        partition, offset = cast(int, message.partition()), cast(int, message.offset())
        yield DeadLetter(partition, offset, message.key(), message.value(), tuple(headers))


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
