"""Waits until Kafka answers and has the topics, and says what they are."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from stream_processor.operation.waiting import wait_while_missing

POLL_S = 0.5


class TopicSearch(Protocol):
    """Tells which topics are missing."""

    def missing(self, names: Iterable[str]) -> str | None:
        """What is still missing, as a text for people; None when all topics are there."""


class TopicEnds(Protocol):
    """Tells how many records topics have had."""

    def end(self, name: str) -> int:
        """The sum of the end offsets of the topic's partitions. Raises KafkaException when the broker is gone."""


class PartitionEnds(Protocol):
    """Tells where the partitions of topics end."""

    def ends(self, name: str) -> dict[int, int]:
        """The end offset of each partition of the topic. Raises KafkaException when the broker is gone."""


class Topics:
    """What the broker at one bootstrap address knows. Calls may block for `timeout_s`."""

    def __init__(self, bootstrap: str, timeout_s: float = 5.0) -> None:
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        # The client's own log repeats each failed connection; this module says it once.
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def missing(self, names: Iterable[str]) -> str | None:
        """See TopicSearch."""
        try:
            known = self._admin.list_topics(timeout=self._timeout_s).topics
        except KafkaException:
            return f"no answer from Kafka at {self._bootstrap}"
        absent = sorted(set(names) - known.keys())
        return f"no topic {', '.join(absent)} at {self._bootstrap}" if absent else None

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """The number of partitions of topics that exist. Raises KafkaException when the broker is gone."""
        known = self._admin.list_topics(timeout=self._timeout_s).topics
        return {name: len(known[name].partitions) for name in names}

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Kafka's ids of topics that exist; one that was made anew has another. Raises KafkaException."""
        described = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout_s)
        return {name: str(future.result().topic_id) for name, future in described.items()}

    def end(self, name: str) -> int:
        """See TopicEnds."""
        return sum(self.ends(name).values())

    def ends(self, name: str) -> dict[int, int]:
        """See PartitionEnds."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # not annotated
        partitions = range(self.partitions([name])[name])
        asked = {TopicPartition(name, number): latest for number in partitions}
        found = self._admin.list_offsets(asked, request_timeout=self._timeout_s)
        return {partition.partition: future.result().offset for partition, future in found.items()}


def wait_for(
    topics: TopicSearch,
    names: Iterable[str],
    stopping: Callable[[float], bool],
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Blocks until all topics exist: see wait_while_missing."""
    wanted = list(names)
    return wait_while_missing(lambda: topics.missing(wanted), stopping, report, POLL_S, clock)
