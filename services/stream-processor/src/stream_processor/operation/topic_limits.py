"""Asks Kafka how large a record each topic takes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # not in its __all__

from stream_processor.definition.dead_letter_topic import dead_letter_topic
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.sink import MAX_REQUEST_BYTES

MAX_MESSAGE_BYTES = "max.message.bytes"


class LargestRecords(Protocol):
    """Tells how large a record topics take."""

    def of(self, topics: Iterable[str]) -> dict[str, int]:
        """Bytes by topic. Raises KafkaException when the broker is gone."""


class TopicLimits:
    """What the topics at one bootstrap address are set to. Calls may block for `timeout_s`."""

    def __init__(self, bootstrap: str, timeout_s: float = 5.0) -> None:
        self._timeout_s = timeout_s
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def of(self, topics: Iterable[str]) -> dict[str, int]:
        """See LargestRecords."""
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in set(topics)]
        found = self._admin.describe_configs(asked, request_timeout=self._timeout_s)
        return {each.name: int(future.result()[MAX_MESSAGE_BYTES].value) for each, future in found.items()}


def with_limits(pipelines: Sequence[Pipeline], largest: LargestRecords) -> list[Pipeline]:
    """The pipelines, knowing how large records their topics take. Raises KafkaException."""
    sinks = [each.definition.sink.topic for each in pipelines]
    letters = [dead_letter_topic(each.definition.source.topic) for each in pipelines]
    sizes = {topic: min(size, MAX_REQUEST_BYTES) for topic, size in largest.of([*sinks, *letters]).items()}
    return [
        replace(each, largest_record=sizes[sink], largest_letter=sizes[letter])
        for each, sink, letter in zip(pipelines, sinks, letters, strict=True)
    ]
