"""Reads the dead letters of a topic, from given offsets to the end that the topic has now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from stream_processor.steps.letter_headers import OF_A_LETTER, OFFSET, PARTITION, REASON, TOPIC, TRUNCATED

GROUP = "stream-processor-replay"
"""Only named because Kafka's client wants one: no offset is ever committed to it."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Letter:
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
        except (KeyError, ValueError):
            return None

    @property
    def reason(self) -> str:
        """Why it was set aside; empty when the headers do not say."""
        return self._text(REASON) if any(key == REASON for key, _ in self.headers) else ""

    @property
    def truncated(self) -> bool:
        """Whether a part of the original is missing."""
        return any(key == TRUNCATED for key, _ in self.headers)

    @property
    def original_headers(self) -> list[Header]:
        """The headers that the original record came with."""
        return [(key, value) for key, value in self.headers if key not in OF_A_LETTER]

    def _text(self, wanted: str) -> str:
        """The header's last value, which is ours: those of the original stand before it."""
        return (dict(self.headers)[wanted] or b"").decode(errors="replace")


class LetterReader:
    """Reads from the broker at one bootstrap address."""

    def __init__(self, bootstrap: str, timeout_s: float = 10.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s

    def read(self, topic: str, starts: Mapping[int, int]) -> Iterator[Letter]:
        """Every letter from the offsets in `starts` on, by default from the first; partition by partition in order.

        Raises KafkaException when the broker is gone.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            for partition in consumer.list_topics(topic, timeout=self._timeout_s).topics[topic].partitions:
                yield from self._partition(consumer, topic, partition, starts.get(partition, OFFSET_BEGINNING))
        finally:
            consumer.close()

    def _partition(self, consumer: Consumer, topic: str, partition: int, start: int) -> Iterator[Letter]:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=self._timeout_s)
        consumer.assign([TopicPartition(topic, partition, start)])
        while (message := consumer.poll(self._timeout_s)) is not None:
            # The only error that is told here without an exception is the end of the partition.
            if message.error() is not None or _offset(message) >= end:
                return
            yield _letter(message)
        raise KafkaException(f"no answer from {self._bootstrap} within {self._timeout_s} s")


def _offset(message: Message) -> int:
    return cast(int, message.offset())


def _letter(message: Message) -> Letter:
    headers = cast(list[Header], message.headers() or [])
    return Letter(cast(int, message.partition()), _offset(message), message.key(), message.value(), tuple(headers))
