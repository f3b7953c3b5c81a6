"""Reads what the pipelines have set aside."""

from dataclasses import dataclass
from typing import cast

from confluent_kafka import Consumer, TopicPartition

from drivers.waiting import eventually, scaled

TOPIC = "orders.dead-letter"

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True)
class DeadLetter:
    """One record of the dead-letter topic; header values as text."""

    key: bytes | None
    value: bytes | None
    headers: dict[str, str]


class DeadLetters:
    """The dead-letter topic of `orders`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def until_value(self, value: bytes) -> DeadLetter:
        """The letter that holds this value; AssertionError when none comes."""

        def find() -> DeadLetter:
            letters = [letter for letter in self.all() if letter.value == value]
            assert letters, f"no dead letter holds {value!r}"
            return letters[0]

        return eventually(find, timeout_s=30)

    def all(self) -> list[DeadLetter]:
        """Every letter up to now."""
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "e2e-dead-letters", "enable.auto.commit": False}
        )
        try:
            end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=scaled(10))[1]
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            letters: list[DeadLetter] = []
            while len(letters) < end:
                record = consumer.poll(scaled(10))
                assert record is not None, f"{TOPIC} could not be read to its end"
                headers = {name: str(text, "utf-8") for name, text in cast(Headers, record.headers() or [])}
                letters.append(DeadLetter(record.key(), record.value(), headers))
            return letters
        finally:
            consumer.close()
