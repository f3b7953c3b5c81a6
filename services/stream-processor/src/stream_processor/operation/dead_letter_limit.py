"""Stops the pipelines when too many records had to be set aside."""

from collections.abc import Sequence

from stream_processor.definition.dead_letter_topic import dead_letter_topic
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import DeadLetterLimitError
from stream_processor.metrics import Metrics
from stream_processor.operation.notes import Notes
from stream_processor.operation.topics import TopicEnds


class DeadLetterLimit:
    """Counts the dead letters of one source topic by the end of their topic.

    They count from the first start, over restarts: a process that starts again after the limit stops again at once,
    and does not set aside another thousand records each time. `accept` begins a new count.
    """

    def __init__(self, source_topic: str, pipelines: Sequence[Pipeline], topics: TopicEnds, notes: Notes) -> None:
        self.topic = dead_letter_topic(source_topic)
        readers = [each.definition for each in pipelines if each.definition.source.topic == source_topic]
        self._limit = min(definition.dead_letters.limit for definition in readers)
        self.topics = topics
        self._note = f"{self.topic}.accepted.json"
        self._notes = notes

    def check(self, metrics: Metrics) -> None:
        """Raises DeadLetterLimitError when there are more dead letters than the lowest limit of the files."""
        end = self.topics.end(self.topic)
        note = self._notes.read(self._note)
        if note is None:
            self._write(end)
        accepted = int(note["end"]) if note else end
        # An end before the accepted one: the topic was made anew.
        count = end - accepted if end >= accepted else end
        metrics.dead_letters.labels(self.topic).set(count)
        if count > self._limit:
            raise DeadLetterLimitError(
                f"{count} dead letters on {self.topic}, the limit is {self._limit}: read their statecast-reason "
                "headers, mend the source or the pipeline, then run `stream-processor accept-dead-letters FILE...`"
            )

    def accept(self) -> int:
        """Counts from now on; returns the end of the topic, which is the new beginning."""
        end = self.topics.end(self.topic)
        self._write(end)
        return end

    def _write(self, end: int) -> None:
        self._notes.replace(self._note, {"end": end})
