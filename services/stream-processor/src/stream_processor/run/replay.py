"""Puts dead letters back onto their source topic, for when the file, the contract or the database was corrected."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from statecast_domains.errors import PipelineFileError
from statecast_service.kafka import KafkaSettings, connect
from stream_processor.errors import ConfigurationError
from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic
from stream_processor.run.checkpoints import Checkpoints, open_checkpoints
from stream_processor.run.letters import DeadLetter, DeadLetterLimits, Header, Place, read_dead_letters
from stream_processor.run.session import start_session
from stream_processor.run.topics import Topics
from stream_processor.settings import Settings
from stream_processor.steps.dead_letters import DEAD_LETTER_HEADERS, REPLAYED

log = structlog.get_logger()

MAX_REQUEST_BYTES = 1_000_000_000
"""The most that Kafka's client can be set to: the source topic has taken the record before."""
FLUSH_TIMEOUT_S = 60.0


class ReplayNote:
    """The offsets of one dead-letter topic that are done: all before `next`, but for those in `left`, by partition.

    Kept in one note, which `save` replaces as a whole. A recreated topic, which has another id, begins anew.
    """

    def __init__(self, notes: Checkpoints, name: str, topic_id: str) -> None:
        self._notes = notes
        self._name = name
        self._topic_id = topic_id
        content = notes.read(name) or {}
        same = content.get("topic_id") == topic_id
        self._next = {int(key): value for key, value in content.get("next", {}).items()} if same else {}
        self._left = {int(key): set(value) for key, value in content.get("left", {}).items()} if same else {}

    def starts(self) -> dict[int, int]:
        """Returns the first offset of each partition that may not be done."""
        return {partition: min([after, *self._left.get(partition, ())]) for partition, after in self._next.items()}

    def is_done(self, partition: int, offset: int) -> bool:
        return offset < self._next.get(partition, 0) and offset not in self._left.get(partition, ())

    def mark(self, partition: int, offset: int, left: bool = False) -> None:
        """Notes that the letter is done, or `left` for another replay."""
        others = self._left.get(partition, set()) - {offset}
        self._left[partition] = others | {offset} if left else others
        self._next[partition] = max(self._next.get(partition, 0), offset + 1)

    def save(self) -> None:
        """Writes the note. Raises CheckpointsUnusableError."""
        left = {partition: sorted(offsets) for partition, offsets in self._left.items() if offsets}
        self._notes.replace(self._name, {"topic_id": self._topic_id, "next": self._next, "left": left})


@dataclass(frozen=True)
class ReplayedRecord:
    """A record that is put back."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


def replay(
    letters: Iterable[DeadLetter], source: str, note: ReplayNote, reason: str, send: Callable[[ReplayedRecord], None]
) -> Counter[str]:
    """Sends the records of the letters with `reason` that are not done, each once; the caller saves `note`.

    Counts how the letters ended: put back; left for another replay; beyond replay; repetitions of others, which a
    record has that several pipelines have set aside. A record that is put back leaves none of its letters.
    """
    counts, seen = Counter(replayed=0, left=0, unusable=0, repeated=0), set[Place]()
    left: dict[Place, list[tuple[int, int]]] = {}
    for letter in letters:
        if note.is_done(letter.partition, letter.offset):
            continue
        origin, position = letter.origin, f"{dead_letter_topic(source)}/{letter.partition}/{letter.offset}"
        if origin is None or origin[0] != source or letter.truncated:
            unknown = f"it does not say where on {source} it stood"
            problem = "a part of the record is missing" if letter.truncated else unknown
            log.warning("cannot replay a record", letter=position, origin=origin, reason=problem)
            counts["unusable"] += 1
        elif origin in seen:
            counts["repeated"] += 1
        elif reason not in letter.reason:
            counts["left"] += 1
            note.mark(letter.partition, letter.offset, left=True)
            left.setdefault(origin, []).append((letter.partition, letter.offset))
            continue
        else:
            seen.add(origin)
            for partition, offset in left.pop(origin, []):
                note.mark(partition, offset)
                counts.update(left=-1, repeated=1)
            own = [header for header in letter.headers if header[0] not in {*DEAD_LETTER_HEADERS, REPLAYED}]
            headers = [*own, (REPLAYED, position.encode())]
            send(ReplayedRecord(source, origin[1], letter.key, letter.value, headers))
            counts["replayed"] += 1
        note.mark(letter.partition, letter.offset)
    return counts


class ReplayProducer:
    """Sends records and waits until Kafka has them."""

    def __init__(self, kafka: KafkaSettings) -> None:
        options = {"enable.idempotence": True, "message.max.bytes": MAX_REQUEST_BYTES}
        self._producer = connect(Producer, kafka, options)
        self._failed: list[KafkaError] = []

    def send(self, record: ReplayedRecord) -> None:
        """Takes the record; may block while many are on their way."""
        arguments = record.topic, record.value, record.key, record.partition
        while True:
            try:
                self._producer.produce(*arguments, headers=[*record.headers], on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(1.0)
        self._producer.poll(0)

    def finish(self) -> None:
        """Blocks until Kafka has all records. Raises KafkaException when it does not take one, or is gone."""
        unsent = self._producer.flush(FLUSH_TIMEOUT_S)
        if self._failed:
            raise KafkaException(self._failed[0])
        if unsent:
            raise KafkaException(f"{unsent} records were not taken in {FLUSH_TIMEOUT_S} s")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)


def replay_all(pipelines: Sequence[Pipeline], settings: Settings, reason: str, dry_run: bool) -> None:
    """Replays the letters of all source topics; a dry run only reports the replay that it would make.

    Raises KafkaException, PipelineFileError for a table that is ordered by offset, and ConfigurationError for topics of
    letters that are missing or may not be read.
    """
    readings = [read for each in pipelines for read in each.readers]
    for each in readings:
        if each.ordered_by_offset:
            problem = f"is a table of {each.table} values: a letter that goes back would hide the row's newer records"
            raise PipelineFileError(each.file, f"{each.section}.topic", f"{problem}; write the row anew")
    letter_topics = {each.source_topic: dead_letter_topic(each.source_topic) for each in readings}
    topics = Topics(settings)
    if (missing := topics.missing({each: {"Read"} for each in letter_topics.values()})) is not None:
        raise ConfigurationError(missing)
    producer = ReplayProducer(settings)
    notes = open_checkpoints(settings.checkpoints, partial(start_session, settings))
    limits = DeadLetterLimits(pipelines, topics.ends_of, partial(read_dead_letters, settings), notes)
    for source, topic in letter_topics.items():
        note = ReplayNote(notes, f"{topic}.replayed.json", topics.states([topic])[topic].id)
        letters = read_dead_letters(settings, topic, note.starts())
        counts = replay(letters, source, note, reason, (lambda _: None) if dry_run else producer.send)
        if not dry_run:
            producer.finish()
            note.save()
        log.info("would be replayed" if dry_run else "replayed", topic=topic, **counts)
        if counts["replayed"] and not dry_run:
            limits.accept(topic)
