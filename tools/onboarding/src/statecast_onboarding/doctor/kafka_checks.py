"""What of a Kafka will not work: topics that are missing or kept in the wrong way, ACLs, and partitioners."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # not in its __all__

from statecast.partitioning import PARTITIONERS, partition_of
from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.doctor.team_files import TeamFiles
from statecast_service.kafka import KafkaSettings, connect, denied

TIMEOUT_S = 10.0
RESUME_LIMIT_MS = 43_200_000
"""QUERY_SERVICE_RESUME_LIMIT_S as it ships: how long an instance may be away and go on where it was."""
SAMPLE = 50
"""How many records at the end of a partition are looked at."""


@dataclass(frozen=True)
class TopicFacts:
    """What a cluster says of a topic; `config` is None when the ACLs hide it."""

    partitions: int
    replicas: int
    operations: frozenset[str]
    """What the ACLs allow to this client; empty also where Kafka has none."""
    config: Mapping[str, str] | None

    @property
    def compacted(self) -> bool:
        return "compact" in (self.config or {}).get("cleanup.policy", "")


class KafkaChecks:
    """The checks of one cluster. No call takes longer than TIMEOUT_S, or changes anything."""

    def __init__(self, kafka: KafkaSettings, files: TeamFiles, service: str | None) -> None:
        """`service` names whose access in the topics file this client must have; None checks that of nobody."""
        self._kafka, self._files, self._service = kafka, files, service
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
        yield from self._partitioners(facts)

    def _facts(self, name: str) -> TopicFacts | Finding:
        described = self._admin.describe_topics(
            TopicCollection([name]), include_authorized_operations=True, request_timeout=TIMEOUT_S
        )[name]
        try:
            topic = described.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return fail(f"topic {name}", "does not exist: kafka-topics FILES/topics.yaml creates it")
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
            text = f"has {facts.partitions} partitions, the topics file says {declared['partitions']}"
            findings.append(fail(subject, f"{text}: correct the file; partitions of a keyed topic must never change"))
        if facts.config is None:
            findings.append(warn(subject, f"{denied('DescribeConfigs', 'topic', name)}: how it is kept is not known"))
        elif name in self._files.sinks:
            findings += _keyed(subject, facts.config)
        elif name in self._files.sources:
            findings += _source(subject, facts.config)
        yield from findings or [ok(subject, f"is there, with {facts.partitions} partitions")]

    def _access(self, subject: str, declared: Mapping[str, Any], facts: TopicFacts) -> Iterator[Finding]:
        needed = (declared.get("access") or {}).get(self._service) if self._service else None
        refused = sorted({*(needed or ())} - facts.operations)
        if refused:
            text = f"the ACLs of Kafka do not allow {', '.join(refused)} to this user"
            yield fail(subject, f"{text}: `kafka-topics --acls` prints what {self._service} needs")

    def _copies(self, subject: str, facts: TopicFacts) -> Iterator[Finding]:
        needed = int((facts.config or {}).get("min.insync.replicas", "1"))
        if facts.replicas < needed:
            text = f"has {facts.replicas} replicas and min.insync.replicas {needed}"
            yield fail(subject, f"{text}: nothing can be written; lower it, or add replicas")
        elif facts.replicas == 1:
            yield warn(subject, "has one replica: it is gone with its broker; make it with --replication-factor 3")

    def _partitioners(self, facts: Mapping[str, TopicFacts]) -> Iterator[Finding]:
        stores = {name: store for name, store in self._files.stores.items() if name in facts}
        if not stores:
            return
        group = {"group.id": "statecast-doctor", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = connect(Consumer, self._kafka, {**group, "enable.partition.eof": True})
        try:
            for name, store in stores.items():
                yield from self._partitioner(consumer, name, store, facts[name].partitions)
        finally:
            consumer.close()

    def _partitioner(
        self, consumer: Consumer, name: str, store: Mapping[str, Any], partitions: int
    ) -> Iterator[Finding]:
        try:
            keys = [each for number in range(partitions) for each in _last_keys(consumer, name, number)]
        except KafkaException as error:
            yield fail(f"topic {name}", f"cannot be read: {error.args[0].str()}; allow Read to this user")
            return
        plain = store.get("format") == "plain"
        groups = [(key if plain else key.partition("\0")[0], at) for key, at in keys]
        fitting = [each for each in PARTITIONERS if all(_fits(each, group, partitions, at) for group, at in groups)]
        declared = store.get("partitioner", "murmur2")
        if groups and declared not in fitting:
            other = (
                f"set partitioner: {fitting[0]} in the stores file" if fitting else "no partitioner that is known fits"
            )
            yield fail(f"topic {name}", f"its keys are not where {declared} puts them, so lookups miss them: {other}")
        elif groups:
            yield ok(f"topic {name}", f"{len(groups)} of its keys are where {declared} puts them")


def _fits(partitioner: str, group: str, partitions: int, at: int) -> bool:
    return partition_of(group, partitions, PARTITIONERS[partitioner]) == at


def _last_keys(consumer: Consumer, topic: str, number: int) -> Iterator[tuple[str, int]]:
    """The keys of a partition's last records that are texts, each with the partition. Raises KafkaException."""
    place = TopicPartition(topic, number)
    first, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
    consumer.assign([TopicPartition(topic, number, max(first, end - SAMPLE))])
    while first < end and (message := consumer.poll(TIMEOUT_S)) is not None and message.error() is None:
        with suppress(UnicodeDecodeError):
            if key := message.key():
                yield (key if isinstance(key, str) else key.decode()), number


def _keyed(subject: str, config: Mapping[str, str]) -> Sequence[Finding]:
    findings = []
    if config.get("cleanup.policy") != "compact":
        text = f"cleanup.policy is {config.get('cleanup.policy')}: rows that do not change are lost; set it to compact"
        findings.append(fail(subject, text))
    retention = int(config.get("delete.retention.ms", RESUME_LIMIT_MS))
    if retention < RESUME_LIMIT_MS:
        text = f"delete.retention.ms is {retention}: an instance that was away longer reads everything again"
        findings.append(warn(subject, f"{text}; set it to {RESUME_LIMIT_MS} or more"))
    return findings


def _source(subject: str, config: Mapping[str, str]) -> Sequence[Finding]:
    retention = int(config.get("retention.ms", "-1"))
    if config.get("cleanup.policy") == "delete" and 0 <= retention < RESUME_LIMIT_MS:
        text = f"retention.ms is {retention}: a processor that was away longer loses changes"
        return [warn(subject, f"{text}; set it to some days")]
    return []
