"""Reads facts of topics from the broker, which decide how long a store keeps deletions and when it starts over."""

from collections.abc import Sequence
from threading import Lock, Thread

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]  # not in its __all__

from query_service.errors import StoreFailedError
from statecast_service.kafka import KafkaSettings, connect, reason

CHECKPOINTED_GROUP = "stream-processor.checkpointed"
"""The consumer group that holds the checkpointed offsets of keyed topics as its committed offsets; nobody joins it."""

_TIMEOUT_S = 3.0
_RETENTION = "delete.retention.ms"

_log = structlog.get_logger()


class TopicFacts:
    """The settings, ids and checkpointed offsets of topics. Any thread may call."""

    def __init__(self, kafka: KafkaSettings, resume_limit_ms: int) -> None:
        """`resume_limit_ms` is the highest limit of a lag that any topic gets."""
        self.resume_limit_ms = resume_limit_ms
        self._group = kafka.group(CHECKPOINTED_GROUP)
        self._admin = connect(AdminClient, kafka)
        group = {"group.id": CHECKPOINTED_GROUP, "enable.auto.commit": False}
        # AdminClient.list_consumer_group_offsets ends the process while a new broker has no coordinator yet.
        self._consumer = connect(Consumer, kafka, group)
        self._retention_ms: dict[str, int] = {}
        self._checkpointed: dict[tuple[str, int], int] = {}
        self._refreshing = Lock()

    def limit_ms(self, topic: str) -> int:
        """Returns how long a replica may lag before compaction may have removed deletions that it has not read.

        Blocks the first time for some seconds at most; raises StoreFailedError when the broker does not say it.
        """
        if topic not in self._retention_ms:
            error = self._read_settings([topic]).get(topic)
            if error is not None:
                why = reason(error.args[0], "DescribeConfigs", topic)
                raise StoreFailedError(f"{_RETENTION} of {topic} is not known: {why}") from error
        return min(self.resume_limit_ms, self._retention_ms[topic])

    def checkpointed_offset(self, topic: str, partition: int) -> int:
        """Returns the offset before which no record can come again, because its source is checkpointed.

        Returns the last known value, or 0 when none is known. The first call has it refreshed from then on.
        """
        return self._checkpointed.setdefault((topic, partition), 0)

    def topic_id(self, topic: str) -> str:
        """Returns the id of the topic that there is now. Blocks for some seconds at most; raises KafkaException."""
        described = self._admin.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT_S)
        return str(described[topic].result().topic_id)

    def refresh(self) -> None:
        """Asks for all of it anew, on a thread of its own, unless the last time is not over."""
        if self._refreshing.acquire(blocking=False):
            Thread(target=self._refresh, name="topic-facts", daemon=True).start()

    def _refresh(self) -> None:
        try:
            failures = self._read_settings(list(self._retention_ms))
            if failures:  # one line for all
                topic, failure = next(iter(failures.items()))
                why = reason(failure.args[0], "DescribeConfigs", topic)
                _log.warning("cannot read settings of topics", topic=topic, reason=why)
            partitions = [TopicPartition(*key) for key in list(self._checkpointed)]
            for each in self._consumer.committed(partitions, timeout=_TIMEOUT_S):
                if each.error is None and each.offset >= 0:
                    self._checkpointed[each.topic, each.partition] = each.offset
        except KafkaException as error:
            why = reason(error.args[0], "Describe", self._group)
            _log.warning("cannot read checkpointed offsets of topics", reason=why)
        finally:
            self._refreshing.release()

    def _read_settings(self, topics: Sequence[str]) -> dict[str, KafkaException]:
        """Reads those of all topics but the ones with the failures that it returns; forgets topics that are gone."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        answers = self._admin.describe_configs(resources, request_timeout=_TIMEOUT_S) if resources else {}
        failures = dict[str, KafkaException]()
        for resource, future in answers.items():
            topic = resource.name
            try:
                retention_ms = int(future.result()[_RETENTION].value)
            except KafkaException as error:
                failures[topic] = error
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    self._retention_ms.pop(topic, None)
                continue
            if retention_ms < self.resume_limit_ms and self._retention_ms.get(topic) != retention_ms:
                event = "delete.retention.ms is below RESUME_LIMIT_S: a replica that lags longer than that starts over"
                _log.warning(event, topic=topic, retention_ms=retention_ms)
            self._retention_ms[topic] = retention_ms
        return failures
