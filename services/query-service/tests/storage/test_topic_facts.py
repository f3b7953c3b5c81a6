"""Facts of topics as a real broker reports them."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined]  # not in its __all__
from structlog.testing import capture_logs

from query_service.errors import StoreFailedError
from query_service.storage.topic_facts import TopicFacts
from statecast_service.kafka import KafkaSettings
from testkit.pytest_plugin import CreateTopic
from testkit.topics import configure_topic, publish_checkpointed
from testkit.waiting import wait_until

HOUR_MS = 3_600_000


def test_the_limit_is_the_lower_of_the_setting_and_the_topics_own(
    brokers: KafkaSettings, create_topic: CreateTopic
) -> None:
    facts = TopicFacts(brokers, resume_limit_ms=12 * HOUR_MS)
    usual, short = create_topic("usual"), create_topic("short", delete_retention_ms=str(HOUR_MS))
    with capture_logs() as logs:
        limits = facts.limit_ms(usual), facts.limit_ms(short)

    assert limits == (12 * HOUR_MS, HOUR_MS)
    assert [log["topic"] for log in logs] == [short]


def test_a_changed_setting_is_noticed(brokers: KafkaSettings, kafka: str, create_topic: CreateTopic) -> None:
    facts, topic = TopicFacts(brokers, 12 * HOUR_MS), create_topic("keyed")
    facts.limit_ms(topic)
    configure_topic(kafka, topic, "delete.retention.ms", "1000")

    def noticed() -> bool:
        facts.refresh()
        return facts.limit_ms(topic) == 1000

    wait_until(noticed, lambda: str(facts.limit_ms(topic)))


def test_the_checkpointed_offset_is_what_the_processor_has_committed(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    facts, topic = TopicFacts(brokers, HOUR_MS), create_topic("keyed", partitions=2)
    publish_checkpointed(kafka, topic, 1, 42)
    assert facts.checkpointed_offset(topic, 1) == 0

    def known() -> bool:
        facts.refresh()
        return facts.checkpointed_offset(topic, 1) == 42

    wait_until(known, lambda: str(facts.checkpointed_offset(topic, 1)))

    assert facts.checkpointed_offset(topic, 0) == 0


class BrokerWithoutATopic:
    """Answers for all topics but `gone`, as a broker that has deleted it."""

    def describe_configs(self, resources: list[ConfigResource], **_: object) -> dict[ConfigResource, Future[Any]]:
        answers: dict[ConfigResource, Future[Any]] = {resource: Future() for resource in resources}
        for resource, answer in answers.items():
            if resource.name == "gone":
                answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
            else:
                answer.set_result({"delete.retention.ms": SimpleNamespace(value="5000")})
        return answers

    def committed(self, partitions: list[TopicPartition], **_: object) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition, 42) for each in partitions]


def test_a_topic_that_was_deleted_keeps_no_facts_of_others_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = TopicFacts(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), HOUR_MS)
    monkeypatch.setattr(facts, "_retention_ms", {"gone": 1000, "keyed": 1000})
    for client in ("_admin", "_consumer"):
        monkeypatch.setattr(facts, client, BrokerWithoutATopic())
    facts.checkpointed_offset("keyed", 0)
    with capture_logs() as logs:
        for _ in range(2):
            facts.refresh()
            facts._refreshing.acquire()  # it is over then
            facts._refreshing.release()

    assert (facts.limit_ms("keyed"), facts.checkpointed_offset("keyed", 0)) == (5000, 42)
    assert [log["topic"] for log in logs if "cannot" in log["event"]] == ["gone"]


def test_without_a_broker_the_limit_is_not_guessed() -> None:
    facts = TopicFacts(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), HOUR_MS)

    with pytest.raises(StoreFailedError, match=r"delete\.retention\.ms of keyed is not known"):
        facts.limit_ms("keyed")
