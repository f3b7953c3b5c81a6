"""Runs `stream-processor replay-dead-letters`: reads, sends, remembers, and begins the limit's count anew."""

from collections.abc import Sequence
from functools import partial

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from stream_processor.definition.dead_letter_topic import dead_letter_topic
from stream_processor.definition.pipeline import Pipeline
from stream_processor.letters.letter_reader import LetterReader
from stream_processor.letters.replay import Counts, ReturnedRecord, replay
from stream_processor.letters.replay_note import ReplayNote
from stream_processor.operation.checkpoints import open_checkpoints
from stream_processor.operation.dead_letter_limit import DeadLetterLimit
from stream_processor.operation.notes import Notes
from stream_processor.operation.session import command_session
from stream_processor.operation.topics import Topics
from stream_processor.settings import Settings

log = structlog.get_logger()

LARGEST_REQUEST = 1_000_000_000
"""Bytes, the most that Kafka's client can be set to: the source topic has taken the record before."""
FLUSH_S = 60.0


class Returner:
    """Sends records and waits until Kafka has them."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer({**settings, "message.max.bytes": LARGEST_REQUEST})
        self._failed: list[KafkaError] = []

    def send(self, record: ReturnedRecord) -> None:
        """Takes the record; may block while many are on their way."""
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    record.partition,
                    headers=[*record.headers],
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(1.0)
        self._producer.poll(0)

    def finish(self) -> None:
        """Blocks until Kafka has all records. Raises KafkaException when it does not take one, or is gone."""
        unsent = self._producer.flush(FLUSH_S)
        if self._failed or unsent:
            raise KafkaException(self._failed[0] if self._failed else f"{unsent} records were not taken in {FLUSH_S} s")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)


def replay_all(pipelines: Sequence[Pipeline], settings: Settings, reason: str, dry_run: bool) -> None:
    """Replays the dead letters of all source topics of the pipelines. Raises KafkaException.

    A dry run says what would be done and does nothing.
    """
    topics, notes = (
        Topics(settings.kafka_bootstrap),
        open_checkpoints(settings.checkpoints, partial(command_session, settings)),
    )
    for source in dict.fromkeys(pipeline.definition.source.topic for pipeline in pipelines):
        counts = _replay(source, topics, notes, settings.kafka_bootstrap, reason, dry_run)
        told = "would be replayed" if dry_run else "replayed"
        log.info(told, topic=dead_letter_topic(source), **vars(counts))
        if counts.replayed and not dry_run:
            DeadLetterLimit(source, pipelines, topics, notes).accept()


def _replay(source: str, topics: Topics, notes: Notes, bootstrap: str, reason: str, dry_run: bool) -> Counts:
    letter_topic = dead_letter_topic(source)
    note = ReplayNote(notes, f"{letter_topic}.replayed.json", topics.ids([letter_topic])[letter_topic])
    letters = LetterReader(bootstrap).read(letter_topic, note.starts())
    if dry_run:
        return replay(letters, source, letter_topic, note, reason, lambda _: None)
    returner = Returner(bootstrap)
    counts = replay(letters, source, letter_topic, note, reason, returner.send)
    returner.finish()
    note.save()
    return counts
