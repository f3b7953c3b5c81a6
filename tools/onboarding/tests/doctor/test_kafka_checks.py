"""Problems that are found in a real Kafka."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from kafka_topics.acls import GROUPS as ACL_GROUPS
from statecast_onboarding.doctor.kafka_checks import GROUPS, KafkaChecks
from statecast_onboarding.doctor.team_files import TeamFiles
from statecast_service.kafka import KafkaSettings
from testkit.ports import free_ports
from testkit.secured_broker import secured_broker
from testkit.topics import create_topic

pytestmark = pytest.mark.kafka

KEPT = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
"""Settings of a keyed topic without a fault."""


@pytest.fixture
def name() -> str:
    return f"doctor-{uuid4().hex[:8]}"


def keyed(name: str, partitions: int = 4, **access: list[str]) -> TeamFiles:
    """Returns the files of a team that has one keyed topic."""
    topic: Mapping[str, Any] = {"name": name, "partitions": partitions, "access": access}
    return TeamFiles(topics={name: topic}, sinks=frozenset({name}), stores={name: {"name": name}})


def lines(settings: KafkaSettings, files: TeamFiles, *services: str) -> list[str]:
    return [str(each) for each in KafkaChecks(settings, files, services).findings()]


def at(bootstrap: str) -> KafkaSettings:
    return KafkaSettings(kafka_bootstrap=bootstrap)


def test_a_keyed_topic_that_is_compacted_does_not_fail(kafka: str, name: str) -> None:
    create_topic(kafka, name, config=KEPT)

    assert not [line for line in lines(at(kafka), keyed(name)) if line.startswith("FAIL")]


def test_how_a_keyed_topic_is_kept_is_told(kafka: str, name: str) -> None:
    create_topic(
        kafka, name, 2, {"cleanup.policy": "delete", "delete.retention.ms": "1000", "min.insync.replicas": "2"}
    )
    findings = lines(at(kafka), keyed(name))

    for start in (
        f"FAIL  topic {name}: has 2 partitions, the files say 4",
        f"FAIL  topic {name}: cleanup.policy is delete",
        f"FAIL  topic {name}: has 1 replicas and min.insync.replicas 2",
        f"WARN  topic {name}: delete.retention.ms is 1000",
        f"FAIL  topic {name}: min.compaction.lag.ms is 0: of a row that was written again, the older record alone may",
    ):
        assert any(line.startswith(start) for line in findings), findings


def test_a_source_topic_that_forgets_soon_is_told(kafka: str, name: str) -> None:
    create_topic(kafka, name, 1, {"cleanup.policy": "delete", "retention.ms": "1000"})
    files = TeamFiles(topics={name: {"name": name}}, sources=frozenset({name}))

    assert any(line.startswith(f"WARN  topic {name}: retention.ms is 1000") for line in lines(at(kafka), files))


def test_changes_on_a_compacted_topic_and_a_table_on_another_fail(kafka: str, name: str) -> None:
    create_topic(kafka, name, 1, {"cleanup.policy": "compact"})
    create_topic(kafka, f"{name}-table", 1, {"cleanup.policy": "delete", "min.compaction.lag.ms": "1000"})
    topics = {each: {"name": each} for each in (name, f"{name}-table")}
    files = TeamFiles(topics=topics, sources=frozenset(topics), tables=frozenset({f"{name}-table"}))
    findings = lines(at(kafka), files)

    for start in (
        f"FAIL  topic {name}: holds changes, and cleanup.policy is compact: compaction takes deletes away",
        f"FAIL  topic {name}-table: is read as a table, and cleanup.policy is delete",
        f"FAIL  topic {name}-table: min.compaction.lag.ms is 1000: a restart may miss rows that left a group",
    ):
        assert any(line.startswith(start) for line in findings), findings


def test_a_topic_that_takes_smaller_records_than_declared_is_told(kafka: str, name: str) -> None:
    create_topic(kafka, name, 1, {"cleanup.policy": "compact", "max.message.bytes": "1000"})
    topic = {"name": name, "config": {"max.message.bytes": "2000"}}
    findings = lines(at(kafka), TeamFiles(topics={name: topic}, sinks=frozenset({name})))

    assert any("max.message.bytes is 1000, the files say 2000" in line for line in findings), findings


def test_a_missing_topic_and_a_missing_broker_are_named(kafka: str, name: str) -> None:
    assert any(line.startswith(f"FAIL  topic {name}: does not exist") for line in lines(at(kafka), keyed(name)))
    [line] = lines(at(f"127.0.0.1:{free_ports(1)[0]}"), keyed(name))
    assert line.startswith("FAIL  kafka: ")


def test_what_a_service_may_not_do_to_its_groups_is_named_with_their_prefix(tmp_path: Path) -> None:
    with secured_broker(tmp_path) as broker:
        broker.set_password("acme", "throw-away")
        broker.allow_prefix("acme", "acme.")
        settings = KafkaSettings.model_validate(broker.with_password("acme"))
        prefixed = settings.model_copy(update={"kafka_group_prefix": "acme."})
        outside = lines(settings, TeamFiles(), "query-service", "ws-edge")
        inside = lines(prefixed, TeamFiles(), "query-service", "stream-processor")
        broker.set_password("seer", "throw-away")
        broker.allow("seer", ["Describe"], "group", ["query-service"])
        little = lines(KafkaSettings.model_validate(broker.with_password("seer")), TeamFiles(), "query-service")

    refused = [line for line in outside if line.startswith("FAIL")]
    assert len(refused) == 2
    assert "group query-service: the ACLs of Kafka do not allow Read on the group query-service" in refused[0]
    assert "Describe on the group stream-processor.checkpointed" in refused[1]
    assert not [line for line in inside if not line.startswith("ok")]
    assert any("do not allow Read on the group query-service" in line for line in little)


def test_a_wrong_partitioner_is_found_by_a_user_without_a_group(tmp_path: Path, name: str) -> None:
    with secured_broker(tmp_path) as broker:
        create_topic(broker.bootstrap, name, config=KEPT)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "consistent_random"})
        for number in range(20):
            producer.produce(name, key=f"key-{number}", value=b"{}")
        producer.flush()
        broker.set_password("reader", "throw-away")
        broker.allow("reader", ["Read"], "topic", [name])
        files = TeamFiles(topics={name: {"name": name}}, stores={name: {"name": name, "format": "plain"}})
        findings = lines(KafkaSettings.model_validate(broker.with_password("reader")), files)

    assert any(
        line.startswith("FAIL") and "keys are where murmur2 puts them, so lookups miss the others" in line
        for line in findings
    )


def test_the_groups_are_those_that_the_acls_of_the_services_name() -> None:
    named = {(service, operation, name) for service, groups in GROUPS.items() for operation, name in groups}

    for service, operation, prefix in ACL_GROUPS:
        assert [each for each in named if each[:2] == (service, operation) and each[2].startswith(prefix)]
    assert len(named) == len(ACL_GROUPS)


def test_what_the_acls_do_not_allow_is_named(tmp_path: Path, name: str) -> None:
    files = keyed(name, reader=["Read", "DescribeConfigs"])
    with secured_broker(tmp_path) as broker:
        create_topic(broker.bootstrap, name, config=KEPT)
        broker.set_password("reader", "throw-away")
        settings = KafkaSettings.model_validate(broker.with_password("reader"))
        nothing = lines(settings, files, "reader")
        broker.allow("reader", ["Describe"], "topic", [name])
        little = lines(settings, files, "reader")
        broker.allow("reader", ["Read", "DescribeConfigs"], "topic", [name])
        enough = lines(settings, files, "reader")
        broker.set_password("reader", "changed")
        (tmp_path / "wrong").write_text("wrong\n")
        stranger = {**broker.with_password("reader"), "kafka_sasl_password_location": tmp_path / "wrong"}
        refused = lines(KafkaSettings.model_validate(stranger), files)

    assert any("do not allow Describe on the topic" in line for line in nothing)
    assert any(line.startswith("FAIL") and "do not allow DescribeConfigs, Read to this user" in line for line in little)
    assert not [line for line in enough if line.startswith("FAIL")]
    assert len(refused) == 1
    assert "Authentication failed" in refused[0] or "SaslAuthentication" in refused[0]
