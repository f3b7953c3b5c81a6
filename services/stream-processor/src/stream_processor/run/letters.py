"""Reads the dead letters of a topic, and counts those of each pipeline against its limit."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import structlog
from confluent_kafka import KafkaException

from statecast_service.kafka import KafkaSettings
from stream_processor.errors import NoteDamagedError
from stream_processor.metrics import Metrics
from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic
from stream_processor.run.checkpoints import Checkpoints
from stream_processor.run.topics import headers_of, read_records
from stream_processor.steps.dead_letters import OFFSET, PARTITION, PIPELINES, REASON, TOPIC, TRUNCATED

log = structlog.get_logger()

Header = tuple[str, bytes | None]

Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter: where it stands, and the original record with the headers of both."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]

    @property
    def origin(self) -> Place | None:
        """Topic, partition and offset of the original record; None when the headers do not say."""
        topic = self._text(TOPIC)
        try:
            return (topic, int(self._text(PARTITION)), int(self._text(OFFSET))) if topic else None
        except ValueError:
            return None

    @property
    def reason(self) -> str:
        """Why it was set aside; empty when the headers do not say."""
        return self._text(REASON)

    @property
    def pipelines(self) -> list[str]:
        """The names of those that cannot use the record."""
        return self._text(PIPELINES).split(",")

    @property
    def is_readable(self) -> bool:
        """Whether the headers say which record it is, and of which pipelines."""
        return self.origin is not None and "" not in self.pipelines

    @property
    def truncated(self) -> bool:
        return TRUNCATED in dict(self.headers)

    def _text(self, name: str) -> str:
        """Returns the header's last value, which is ours: those of the original stand before it.

        Empty when there is none, or no text.
        """
        try:
            return (dict(self.headers).get(name) or b"").decode()
        except UnicodeDecodeError:
            return ""


def read_dead_letters(kafka: KafkaSettings, topic: str, starts: Mapping[int, int]) -> Iterator[DeadLetter]:
    """Yields every letter from `starts`, by default the first, to the ends of now, as read_records does."""
    for message in read_records(kafka, topic, starts):
        partition, offset = cast(int, message.partition()), cast(int, message.offset())
        yield DeadLetter(partition, offset, message.key(), message.value(), tuple(headers_of(message)))


Ends = Mapping[int, int]
"""By partition, how many records it has had."""


MAX_KNOWN = 100_000
"""Changes of a topic that are remembered from before the count. An earlier one counts if it is set aside again."""


@dataclass
class CountedChanges:
    """Counts changes, each once as far as the limit goes; those beyond it are a number and take no memory."""

    limit: int
    changes: set[Place] = field(default_factory=set)
    beyond: int = 0

    def add(self, change: Place) -> None:
        """Counts the change, if it is not known to have been counted."""
        if change in self.changes:
            return
        if len(self.changes) <= self.limit:
            self.changes.add(change)
        else:
            self.beyond += 1

    def __len__(self) -> int:
        return len(self.changes) + self.beyond


@dataclass
class _Letters:
    """The letters read of one dead-letter topic: the changes of each pipeline, and all of them together.

    A change counts once, however often it was set aside. One that was set aside before the count began never
    counts: the first start of another generation finds those of its elders. A letter with headers that cannot be read
    may be of any pipeline, or of none: it counts among those together, and against no limit.
    """

    by_pipeline: dict[str, CountedChanges]
    together: CountedChanges
    accepted: Ends
    next: dict[int, int] = field(default_factory=dict)
    known: OrderedDict[Place, None] = field(default_factory=OrderedDict)
    unreadable: int = 0

    def add(self, letter: DeadLetter) -> None:
        """Counts the letter, if it is to be counted."""
        self.next[letter.partition] = letter.offset + 1
        change = letter.origin or ("", letter.partition, letter.offset)
        if letter.offset < self.accepted.get(letter.partition, 0):
            self.known[change] = None
            if len(self.known) > MAX_KNOWN:
                self.known.popitem(last=False)
            # Partitions are read side by side: a later letter of the same change may have been counted.
            for count in (self.together, *self.by_pipeline.values()):
                count.changes.discard(change)
        elif not letter.is_readable:
            self.unreadable += 1
            self.together.add(change)
        elif change not in self.known and (names := self.by_pipeline.keys() & letter.pipelines):
            for count in (self.together, *(self.by_pipeline[name] for name in names)):
                count.add(change)


class DeadLetterLimits:
    """Counts the changes that each pipeline could not use, by their dead letters, against the limit of its file.

    They count from the first start, over restarts: a pipeline that starts again after its limit stops again at once,
    and does not set aside another thousand records each time. `accept` begins a new count. `ends` gives those of
    the topics that exist, `read` a topic's letters from the offsets of some partitions on, others from the beginning;
    both raise KafkaException, and each use of the notes CheckpointsUnusableError. `stopping` says to leave off reading.
    """

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        ends: Callable[[Iterable[str]], Mapping[str, Ends]],
        read: Callable[[str, Ends], Iterable[DeadLetter]],
        notes: Checkpoints,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.too_many: dict[str, str] = {}
        """The remedy, by the name of each pipeline that had too many at the last check, or a damaged note."""
        self.by_topic: dict[str, dict[str, int]] = {}
        self._letters: dict[str, _Letters] = {}
        for each in pipelines:
            self.add(each)
        self._ends = ends
        self._read = read
        self._notes = notes
        self._stopping = stopping

    def add(self, pipeline: Pipeline) -> None:
        """Counts the letters of one more pipeline: their topics are read from where the count began."""
        for topic in map(dead_letter_topic, pipeline.source_topics):
            self.by_topic.setdefault(topic, {})[pipeline.name] = pipeline.definition.dead_letters.limit
            self._letters.pop(topic, None)

    def remove(self, pipeline: Pipeline) -> None:
        """Counts the letters of the pipeline no more."""
        for topic in map(dead_letter_topic, pipeline.source_topics):
            self.by_topic[topic].pop(pipeline.name)
            self._letters.pop(topic, None)

    def check(self, metrics: Metrics) -> dict[str, str]:
        """Updates `too_many` and returns it; a reading that `stopping` interrupts goes on at the next check."""
        too_many = dict[str, str]()
        ends = self._ends(self.by_topic)
        for topic, limits in self.by_topic.items():
            if topic not in ends:  # its pipeline has other troubles now
                continue
            try:
                letters = self._up_to_date(topic, ends[topic])
            except NoteDamagedError as error:
                too_many |= dict.fromkeys(limits, f"{error}: run `stream-processor accept-dead-letters FILE...`")
                continue
            if self._stopping():
                return self.too_many
            self._warn(topic, letters)
            metrics.dead_letters.labels(topic).set(len(letters.together))
            for name, limit in limits.items():
                if (count := len(letters.by_pipeline[name])) > limit:
                    too_many[name] = (
                        f"{count} dead letters on {topic}, the limit is {limit} of {name}: read their statecast-reason "
                        "headers, mend the source or the pipeline, then run `stream-processor accept-dead-letters "
                        "FILE...`"
                    )
        self.too_many = too_many
        return too_many

    def _warn(self, topic: str, letters: _Letters) -> None:
        if letters.unreadable:
            log.warning(
                "dead letters without a readable origin or pipeline count against no limit",
                topic=topic,
                letters=letters.unreadable,
            )
            letters.unreadable = 0

    @property
    def counted(self) -> int:
        """How many dead letters count, as of the last check."""
        return sum(len(each.together) for each in self._letters.values())

    def accept(self, topic: str) -> int:
        """Counts from now on; returns how many records the topic has had, the new beginning. Raises KafkaException."""
        ends = self._ends([topic]).get(topic)
        if ends is None:
            raise KafkaException(f"the offsets of {topic} cannot be read")
        self._begin(topic, ends)
        return sum(ends.values())

    def _up_to_date(self, topic: str, ends: Ends) -> _Letters:
        """Returns the letters of the topic: all that stand on it now, unless `stopping` says to leave off."""
        letters = self._letters.get(topic)
        if letters is not None and _is_another(ends, letters.next):
            self._begin(topic, {})
        accepted = self._accepted(topic, ends)
        if letters is None or letters.accepted != accepted or _is_another(ends, letters.next):
            limits = self.by_topic[topic]
            by_pipeline = {name: CountedChanges(limit) for name, limit in limits.items()}
            letters = _Letters(by_pipeline, CountedChanges(sum(limits.values())), accepted)
            self._letters[topic] = letters
        if any(end > letters.next.get(partition, 0) for partition, end in ends.items()):
            for letter in self._read(topic, letters.next):
                letters.add(letter)
                if self._stopping():
                    return letters
            # Letters that retention has deleted are not read.
            letters.next = {
                **letters.next,
                **{number: max(end, letters.next.get(number, 0)) for number, end in ends.items()},
            }
        return letters

    def _accepted(self, topic: str, ends: Ends) -> Ends:
        """Returns where the count begins in each partition: at the ends of the first start, at 0 in a new topic."""
        note = self._notes.read(_note(topic))
        if note is None or "ends" not in note:
            return self._begin(topic, ends)
        accepted = {int(partition): end for partition, end in note["ends"].items()}
        # Noted at once: a new topic may soon have as many letters as the old one had.
        return self._begin(topic, {}) if _is_another(ends, accepted) else accepted

    def _begin(self, topic: str, ends: Ends) -> Ends:
        self._notes.replace(_note(topic), {"ends": dict(ends)})
        return ends


def _note(topic: str) -> str:
    return f"{topic}.accepted.json"


def _is_another(ends: Ends, before: Ends) -> bool:
    """Returns whether a topic with these ends cannot be the one that had those before."""
    return any(ends.get(partition, 0) < end for partition, end in before.items())
