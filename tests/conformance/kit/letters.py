"""Follows the dead letters of all topics."""

from collections import defaultdict
from contextlib import suppress
from typing import cast

from confluent_kafka import Consumer, KafkaException, TopicPartition

SUFFIX = ".dead-letter"
REASON = "statecast-reason"
OF_PIPELINE = ("statecast-pipelines", "statecast-truncated")
"""Headers in which the letters of a record differ by the pipeline that has set it aside."""
POLL_S = 0.2


class Letters:
    """The reasons of all dead letters so far, by the topic that they stand on; of a record each reason once."""

    def __init__(self, bootstrap: str) -> None:
        self.reasons: dict[str, list[str]] = defaultdict(list)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "conformance-letters"})
        self._assigned: set[str] = set()
        self._seen = set[tuple[str, frozenset[tuple[str, bytes]]]]()

    def read(self) -> None:
        """Reads the letters that have come."""
        topics = self._consumer.list_topics(timeout=30).topics.values()
        new = {topic.topic: list(topic.partitions) for topic in topics if topic.topic.endswith(SUFFIX)}
        added = [TopicPartition(name, number, 0) for name in new.keys() - self._assigned for number in new[name]]
        if added:
            self._consumer.incremental_assign(added)
            self._assigned |= new.keys()
        if not self._assigned:
            return
        while records := self._consumer.consume(1000, timeout=POLL_S):
            for record in records:
                if record.error() is None:
                    headers = dict(cast(list[tuple[str, bytes]], record.headers() or []))
                    letter = (
                        str(record.topic()),
                        frozenset(each for each in headers.items() if each[0] not in OF_PIPELINE),
                    )
                    if letter not in self._seen:
                        self._seen.add(letter)
                        self.reasons[letter[0]].append(headers.get(REASON, b"").decode())

    def close(self) -> None:
        with suppress(KafkaException):
            self._consumer.close()
