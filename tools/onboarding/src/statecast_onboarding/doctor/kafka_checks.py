"""Checks a Kafka: its topics, ACLs and groups, and the newest records of stores and sources."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # not in its __all__

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.doctor.record_checks import check_clock, check_rows, check_transactions, newest_records
from statecast_onboarding.doctor.team_files import TeamFiles
from statecast_onboarding.doctor.topic_checks import check_settings_of, is_compacted
from statecast_service.kafka import KafkaSettings, connect, denied

TIMEOUT_S = 10.0
GROUP_TIMEOUT_S = 30.0
"""The first group of a Kafka waits until it has made the topic of all groups' offsets."""
GROUPS = {
    "query-service": (("Read", "query-service"), ("Describe", "stream-processor.checkpointed")),
    "stream-processor": (("Read", "stream-processor.checkpointed"),),
    "statecast-jobs": (("Describe", "statecast-jobs"),),
}
"""The operations that each service must be allowed on consumer groups, by the groups' names without the prefix."""
_LIBRDKAFKA_TIMEOUT_S = 600.0
"""librdkafka aborts the process when this passes before the coordinator of a group is found (its issue 4605)."""
_NO_COORDINATOR = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_AGAIN_S = 0.2


@dataclass(frozen=True)
class TopicFacts:
    """Facts of a topic in a cluster; `config` is None when the ACLs hide it."""

    partitions: int
    replicas: int
    operations: frozenset[str]
    """The operations that the ACLs allow to this client; empty also where Kafka has no ACLs."""
    config: Mapping[str, str] | None

    @property
    def compacted(self) -> bool:
        return is_compacted(self.config)


class KafkaChecks:
    """The checks of one cluster. None waits much longer than GROUP_TIMEOUT_S, or changes anything."""

    def __init__(self, kafka: KafkaSettings, files: TeamFiles, services: Sequence[str]) -> None:
        """`services` names services: this client must have their access, to topics by the files and to groups."""
        self._kafka, self._files, self._services = kafka, files, services
        self._heard: list[KafkaError] = []
        self._admin = connect(AdminClient, kafka, on_error=self._heard.append)
        self.compacted: set[str] = set()
        """The source topics that Kafka compacts, once `findings` has been read."""

    def findings(self) -> Iterator[Finding]:
        names = list(self._files.topics)
        try:
            self._admin.list_topics(timeout=TIMEOUT_S)
        except KafkaException as error:
            self._admin.poll(0)
            reasons = " ".join(dict.fromkeys(each.str() for each in self._heard)) or error.args[0].str()
            todo = "correct --kafka, the credentials, or security.protocol in --kafka-properties"
            yield fail("kafka", f"{self._kafka.kafka_bootstrap} does not answer ({reasons}): {todo}")
            return
        yield ok("kafka", f"{self._kafka.kafka_bootstrap} answers")
        facts: dict[str, TopicFacts] = {}
        for name in names:
            known = self._facts(name)
            if isinstance(known, Finding):
                yield known
                continue
            facts[name] = known
            yield from self._topic(name, known)
        self.compacted = {name for name in self._files.sources if name in facts and facts[name].compacted}
        for service in self._services:
            for operation, group in GROUPS.get(service, ()):
                yield self._group(operation, self._kafka.group(group), service)
        yield from self._records(facts)

    def _facts(self, name: str) -> TopicFacts | Finding:
        described = self._admin.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=TIMEOUT_S
        )[name]
        try:
            topic = described.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return fail(f"topic {name}", "does not exist: `statecast apply FILES/pipelines` creates it")
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return fail(f"topic {name}", f"{denied('Describe', 'topic', name)}, or it does not exist")
            return fail(f"topic {name}", error.args[0].str())
        operations = frozenset(each.name.title().replace("_", "") for each in topic.authorized_operations or ())
        replicas = min((len(each.replicas) for each in topic.partitions), default=0)
        return TopicFacts(len(topic.partitions), replicas, operations, self._config(name))

    def _config(self, name: str) -> Mapping[str, str] | None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        answers = self._admin.describe_configs([resource], request_timeout=TIMEOUT_S)
        try:
            return {key: str(entry.value) for key, entry in answers[resource].result().items()}
        except KafkaException:
            return None

    def _topic(self, name: str, facts: TopicFacts) -> Iterator[Finding]:
        subject, declared = f"topic {name}", self._files.topics[name]
        findings = [*self._access(subject, declared, facts), *self._copies(subject, facts)]
        if declared.get("partitions") not in (None, facts.partitions):
            text = f"has {facts.partitions} partitions, the files say {declared['partitions']}"
            findings.append(fail(subject, f"{text}: correct the file; partitions of a keyed topic must never change"))
        if facts.config is None:
            findings.append(warn(subject, f"{denied('DescribeConfigs', 'topic', name)}: how it is kept is not known"))
        else:
            findings += check_settings_of(name, facts.config, self._files)
        yield from findings or [ok(subject, f"is there, with {facts.partitions} partitions")]

    def _access(self, subject: str, declared: Mapping[str, Any], facts: TopicFacts) -> Iterator[Finding]:
        access = declared.get("access") or {}
        for service in self._services:
            refused = sorted({*(access.get(service) or ())} - facts.operations)
            if refused:
                text = f"the ACLs of Kafka do not allow {', '.join(refused)} to this user"
                yield fail(subject, f"{text}: `kafka-topics --acls` prints what {service} needs")

    def _group(self, operation: str, name: str, service: str) -> Finding:
        subject = f"group {name}"
        try:
            allowed = operation in self._operations(name)
        except TimeoutError:
            return fail(subject, "its coordinator does not answer: look into the logs of the brokers")
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                return fail(subject, f"cannot be looked at: {error.args[0].name()}")
            allowed = False
        if allowed:
            return ok(subject, f"{service} may use it")
        todo = f"`kafka-topics --acls` prints what {service} needs; what begins the name is group.prefix"
        return fail(subject, f"{denied(operation, 'group', name)}: {todo}")

    def _operations(self, group: str) -> frozenset[str]:
        """Returns the ACLs' operations on a group, which need not be there. Raises KafkaException, TimeoutError."""
        deadline = time.monotonic() + GROUP_TIMEOUT_S
        while True:
            described = self._admin.describe_consumer_groups(
                [group], include_authorized_operations=True, request_timeout=_LIBRDKAFKA_TIMEOUT_S
            )
            try:
                operations = described[group].result(TIMEOUT_S).authorized_operations
                return frozenset(each.name.title() for each in operations or ())
            except KafkaException as error:
                if error.args[0].code() not in _NO_COORDINATOR or time.monotonic() > deadline:
                    raise
            except TimeoutError:  # a call that began before there was a coordinator may wait for ever
                if time.monotonic() > deadline:
                    raise
            time.sleep(_AGAIN_S)

    def _copies(self, subject: str, facts: TopicFacts) -> Iterator[Finding]:
        needed = int((facts.config or {}).get("min.insync.replicas", "1"))
        if facts.replicas < needed:
            text = f"has {facts.replicas} replicas and min.insync.replicas {needed}"
            yield fail(subject, f"{text}: nothing can be written; lower it, or add replicas")
        elif facts.replicas == 1:
            yield warn(subject, "has one replica: it is gone with its broker; make it with --replication-factor 3")

    def _records(self, facts: Mapping[str, TopicFacts]) -> Iterator[Finding]:
        """Looks at the newest records of stores' topics and sources."""
        names = [name for name in facts if name in self._files.stores or name in self._files.sources]
        if not names:
            return
        with self._consumer("read_committed") as committed, self._consumer("read_uncommitted") as uncommitted:
            for name in names:
                try:
                    yield from self._records_of(committed, uncommitted, name, facts[name].partitions)
                except KafkaException as error:
                    level = fail if name in self._files.stores else warn
                    yield level(f"topic {name}", f"cannot be read: {error.args[0].str()}; allow Read to this user")

    def _records_of(self, committed: Consumer, uncommitted: Consumer, name: str, partitions: int) -> Iterator[Finding]:
        records, store = newest_records(committed, name, partitions), self._files.stores.get(name)
        if store is not None or name in self._files.tables:
            yield from check_rows(name, records, store, partitions)
        yield from check_clock(name, records)
        yield from check_transactions(committed, uncommitted, name, partitions)

    @contextmanager
    def _consumer(self, isolation: str) -> Iterator[Consumer]:
        settings = {"group.id": "statecast-doctor", "enable.auto.commit": False, "enable.partition.eof": True}
        settings |= {"auto.offset.reset": "earliest", "isolation.level": isolation}
        consumer = connect(Consumer, self._kafka, settings)
        try:
            yield consumer
        finally:
            consumer.close()
