"""The topics of a real cluster."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from statecast_service.kafka import KafkaSettings
from statecast_service.kafka_cluster import BrokerAwayError, Cluster, TopicRefusedError
from statecast_service.topics import Topic
from testkit.ports import free_ports


def cluster_at(bootstrap: str, timeout_s: float = 30) -> Cluster:
    return Cluster(KafkaSettings(kafka_bootstrap=bootstrap), timeout_s)


def test_a_created_topic_is_found_with_its_settings(kafka: str) -> None:
    topic = Topic(f"made-{uuid4().hex[:8]}", 3, {"cleanup.policy": "compact"})
    cluster = cluster_at(kafka)
    cluster.create([topic], None)

    topic_state = cluster.wait_for([topic.name])[topic.name]

    assert topic_state.partitions == 3
    assert topic_state.config["cleanup.policy"] == "compact"


def test_a_topic_that_somebody_else_created_meanwhile_is_fine(kafka: str, create_topic: Callable[..., str]) -> None:
    name = create_topic("raced", partitions=2)
    cluster_at(kafka).create([Topic(name, 5, {})], None)

    assert cluster_at(kafka).topics([name])[name].partitions == 2


def test_a_topic_that_the_broker_refuses_is_named_with_the_reason(kafka: str) -> None:
    name = f"refused-{uuid4().hex[:8]}"

    with pytest.raises(TopicRefusedError, match=rf"{name}: the broker refuses it: .*retention\.mz"):
        cluster_at(kafka).create([Topic(name, 1, {"retention.mz": "7"})], None)


def test_topics_that_do_not_exist_are_left_out(kafka: str) -> None:
    assert cluster_at(kafka).topics([f"absent-{uuid4().hex[:8]}"]) == {}


def test_it_says_that_it_waits_and_gives_up_in_the_end() -> None:
    bootstrap = f"127.0.0.1:{free_ports(1)[0]}"
    said: list[str] = []

    with pytest.raises(BrokerAwayError, match=f"no broker answers at {bootstrap} after 0.5 s: start it"):
        cluster_at(bootstrap, timeout_s=0.5).wait(said.append)

    assert said == [f"waiting for a broker at {bootstrap}, 0.5 s at most"]
