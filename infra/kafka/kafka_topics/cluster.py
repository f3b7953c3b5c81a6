"""Reads and creates the topics of a Kafka cluster."""

from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]  # not in __all__

from kafka_topics.errors import BrokerAwayError, TopicRefusedError
from kafka_topics.topics_file import Topic

ATTEMPT_S = 1.0
BROKERS_DEFAULT_REPLICATION = -1


class Clock(Protocol):
    """Tells the time and passes it, in seconds; `time` in production."""

    def monotonic(self) -> float:
        """The seconds since some fixed moment; never goes backwards."""

    def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""


class Cluster:
    """The cluster behind one bootstrap address; no wait lasts longer than `timeout_s` from when it was made."""

    def __init__(self, admin: AdminClient, bootstrap: str, timeout_s: float, clock: Clock) -> None:
        self._admin = admin
        self._bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._clock = clock
        self._deadline = clock.monotonic() + timeout_s

    def wait(self, say: Callable[[str], None]) -> None:
        """Returns once a broker answers, saying that it waits if it must. Raises BrokerAwayError in the end."""
        said = False
        while not self._answers():
            if not said:
                say(f"waiting for a broker at {self._bootstrap}, {self._timeout_s:g} s at most")
            said = True
            if self._remaining() <= 0:
                raise BrokerAwayError(
                    f"no broker answers at {self._bootstrap} after {self._timeout_s:g} s: "
                    "start it, or correct --bootstrap-server, or raise --timeout"
                )

    def create(self, topics: Sequence[Topic], replication_factor: int | None) -> None:
        """Creates the topics; one that somebody else creates meanwhile is fine. Raises TopicRefusedError."""
        factor = replication_factor or BROKERS_DEFAULT_REPLICATION
        new = [NewTopic(each.name, each.partitions, factor, config=dict(each.config)) for each in topics]
        if not new:
            return
        for name, creation in self._admin.create_topics(new, operation_timeout=self._call_s()).items():
            try:
                creation.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise TopicRefusedError(f"{name}: the broker refuses it: {error.args[0].str()}") from error

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """Returns those of the named topics that exist, by name, with all their settings. Raises BrokerAwayError."""
        try:
            found = self._admin.list_topics(timeout=self._call_s()).topics
            partitions = {name: len(found[name].partitions) for name in names if name in found}
            configs = self._configs(list(partitions))
            return {name: Topic(name, partitions[name], configs[name]) for name in partitions}
        except KafkaException as error:
            raise BrokerAwayError(f"the broker at {self._bootstrap} went away: {error.args[0].str()}") from error

    def wait_for(self, names: Sequence[str]) -> dict[str, Topic]:
        """As `topics`, but gives created topics until the deadline to become visible everywhere."""
        while len(found := self.topics(names)) < len(names) and self._remaining() > 0:
            self._clock.sleep(0.1)
        return found

    def _answers(self) -> bool:
        try:
            self._admin.list_topics(timeout=max(0.1, min(ATTEMPT_S, self._remaining())))
        except KafkaException:
            return False
        return True

    def _configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        answers = self._admin.describe_configs(resources, request_timeout=self._call_s())
        return {
            resource.name: {key: entry.value for key, entry in answer.result().items()}
            for resource, answer in answers.items()
        }

    def _remaining(self) -> float:
        return self._deadline - self._clock.monotonic()

    def _call_s(self) -> float:
        return max(1.0, self._remaining())
