"""Reads and creates the topics of a Kafka cluster, for commands that create topics from files."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]  # not in __all__

from statecast_service.errors import ServiceError
from statecast_service.kafka import KafkaSettings, connect, is_refusal, reason
from statecast_service.topics import DeclaredTopic, Topic

ATTEMPT_S = 1.0
BROKERS_DEFAULT_REPLICATION = -1


class BrokerAwayError(ServiceError):
    """No broker answered in time."""


class TopicRefusedError(ServiceError):
    """The broker refused to create a topic, or to describe its settings."""


class Cluster:
    """The cluster behind one bootstrap address; `timeout_s` from its construction on, every wait ends.

    Errors name the address by the caller's `option`.
    """

    def __init__(self, kafka: KafkaSettings, timeout_s: float, option: str = "--bootstrap-server") -> None:
        self._option = option
        self._admin = connect(AdminClient, kafka, on_error=self._hear)
        self._bootstrap = kafka.kafka_bootstrap
        self._refusal = ""
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s

    def wait(self, say: Callable[[str], None]) -> None:
        """Waits until a broker answers; `say` reports the wait, if any. Raises BrokerAwayError at the deadline."""
        if self._answers():
            return
        say(f"waiting for a broker at {self._bootstrap}, {self._timeout_s:g} s at most")
        while not self._answers():
            if self._remaining() <= 0:
                todo = self._refusal or f"start it, or correct {self._option}, or raise --timeout"
                raise BrokerAwayError(f"no broker answers at {self._bootstrap} after {self._timeout_s:g} s: {todo}")

    def create(self, topics: Sequence[DeclaredTopic], replication_factor: int | None) -> None:
        """Creates the topics; accepts one that exists by now. Raises TopicRefusedError."""
        factor = replication_factor or BROKERS_DEFAULT_REPLICATION
        new = [NewTopic(topic.name, topic.partitions, factor, config=dict(topic.config)) for topic in topics]
        if not new:
            return
        for name, creation in self._admin.create_topics(new, operation_timeout=self._call_s()).items():
            try:
                creation.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    why = reason(error.args[0], "Create", name)
                    raise TopicRefusedError(f"{name}: the broker refuses it: {why}") from error

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Returns those of the named topics that exist, by name, with all their settings. Raises BrokerAwayError."""
        try:
            existing = self._admin.list_topics(timeout=self._call_s()).topics
            partitions = {name: len(existing[name].partitions) for name in names if name in existing}
            resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in partitions]
            answers = self._admin.describe_configs(resources, request_timeout=self._call_s()) if resources else {}
            configs = {topic.name: _config(topic.name, answer) for topic, answer in answers.items()}
            return {name: Topic(name, count, configs[name]) for name, count in partitions.items()}
        except KafkaException as error:
            raise BrokerAwayError(f"the broker at {self._bootstrap} went away: {error.args[0].str()}") from error

    def wait_for(self, names: Sequence[str]) -> dict[str, Topic]:
        """As `topics`, but gives created topics until the deadline to become visible everywhere."""
        while len(topics := self.topics(names)) < len(names) and self._remaining() > 0:
            time.sleep(0.1)
        return topics

    def _hear(self, error: KafkaError) -> None:
        self._refusal = error.str() if is_refusal(error) else ""

    def _answers(self) -> bool:
        try:
            self._admin.list_topics(timeout=max(0.1, min(ATTEMPT_S, self._remaining())))
        except KafkaException:
            self._admin.poll(0)
            return False
        return True

    def _remaining(self) -> float:
        return self._deadline - time.monotonic()

    def _call_s(self) -> float:
        return max(1.0, self._remaining())


def _config(topic: str, answer: "Future[dict[str, Any]]") -> dict[str, str]:
    try:
        return {key: entry.value for key, entry in answer.result().items()}
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        raise TopicRefusedError(reason(error.args[0], "DescribeConfigs", topic)) from error
