"""Which records of a keyed topic cannot be written again."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from prometheus_client import CollectorRegistry

from statecast_service.kafka import KafkaSettings
from stream_processor.metrics import Metrics
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.checkpointed import INTERVAL_S, CheckpointedGroup, CheckpointedOffsets
from stream_processor.run.plan import plan
from stream_processor.run.topics import read_records
from stream_processor.run.watch import WatchedQuery
from testkit import topics
from testkit.pytest_plugin import CreateTopic
from testkit.secured_broker import SecuredBroker, secured_broker
from testkit.stream_processor.fakes import FakeQuery
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.process import wait_until


class FakeTopics:
    """Topics with ends that a test sets, and the offsets that were committed."""

    def __init__(self) -> None:
        self.ends_of: dict[str, dict[int, int]] = {"orders": {0: 0, 1: 0}, "orders-by-key": {0: 0}}
        self.committed: list[tuple[str, Mapping[int, int]]] = []
        self.away = False
        self.marks = 0

    def ends(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        if self.away:
            raise KafkaException("away")
        return {name: dict(self.ends_of[name]) for name in names if name in self.ends_of}

    def readable_ends(self, name: str) -> dict[int, int]:
        return {number: end - self.marks for number, end in self.ends_of[name].items()}

    def commit(self, topic: str, offsets: Mapping[int, int]) -> None:
        self.committed.append((topic, offsets))


class Run:
    """A query under way, and looks at it that come late enough."""

    def __init__(self, pipeline: Pipeline) -> None:
        [planned] = plan([pipeline], {"orders": 2, "orders-by-key": 1, "orders.dead-letter": 1})
        self._plan, self._metrics, self._running = planned, Metrics(CollectorRegistry()), list[WatchedQuery]()
        self.start_again()
        self.topics = FakeTopics()
        self.now = 0.0
        topics = self.topics
        self._offsets = CheckpointedOffsets(
            topics.ends, topics.readable_ends, topics.commit, self._running, lambda: self.now
        )

    def start_again(self) -> None:
        self.query = WatchedQuery(self._plan, cast(Any, FakeQuery([])), self._metrics)
        self._running[:] = [self.query]

    def look(self, after_s: float = INTERVAL_S) -> list[Mapping[int, int]]:
        """Returns the ends that have been published by then."""
        self.now += after_s
        self._offsets.look()
        return [offsets for _, offsets in self.topics.committed]


@pytest.fixture
def run(shipped: PipelineOf) -> Run:
    return Run(shipped("orders-by-key"))


def test_the_mark_of_a_transaction_at_the_end_of_the_source_is_not_waited_for(run: Run) -> None:
    run.topics.ends_of |= {"orders": {0: 50, 1: 7}, "orders-by-key": {0: 40}}
    run.topics.marks = 1
    run.look()
    run.query.checkpointed = {"orders": {0: 48, 1: 6}}
    assert run.look() == [{0: 0}]
    run.query.checkpointed = {"orders": {0: 49, 1: 6}}

    assert run.look() == [{0: 0}, {0: 40}]


def test_what_was_written_is_published_once_a_checkpoint_holds_what_it_was_made_from(run: Run) -> None:
    run.topics.ends_of |= {"orders": {0: 50, 1: 7}, "orders-by-key": {0: 40}}
    run.look()
    run.topics.ends_of |= {"orders": {0: 90, 1: 9}, "orders-by-key": {0: 80}}
    run.query.checkpointed = {"orders": {0: 49, 1: 9}}
    assert run.look() == [{0: 0}]
    run.query.checkpointed = {"orders": {0: 50, 1: 9}}

    assert run.look() == [{0: 0}, {0: 40}]
    assert run.topics.committed[1][0] == "orders-by-key"
    run.query.checkpointed = {"orders": {0: 90, 1: 9}}
    assert run.look() == [{0: 0}, {0: 40}, {0: 80}]


def test_what_a_process_before_wrote_counts_only_when_this_one_has_come_as_far(run: Run) -> None:
    """The first checkpoint after a kill may end before the last record that the killed process had read and written."""
    run.topics.ends_of |= {"orders": {0: 100, 1: 0}, "orders-by-key": {0: 100}}
    run.query.checkpointed = {"orders": {0: 60}}
    run.look()
    assert run.look() == [{0: 0}]
    run.query.checkpointed = {"orders": {0: 100}}

    assert run.look() == [{0: 0}, {0: 100}]


def test_a_query_that_is_started_again_takes_back_what_was_published(run: Run) -> None:
    run.topics.ends_of |= {"orders": {0: 50, 1: 0}, "orders-by-key": {0: 40}}
    run.look()
    run.query.checkpointed = {"orders": {0: 50}}
    run.look()
    run.start_again()

    assert run.look(after_s=0) == [{0: 0}, {0: 40}, {0: 0}]
    run.query.checkpointed = {"orders": {0: 50}}
    assert run.look()[3:] == [{0: 40}]


def test_it_asks_the_broker_from_time_to_time_only(run: Run) -> None:
    run.look()
    run.query.checkpointed = {"orders": {0: 0, 1: 0}}

    assert len(run.look(after_s=INTERVAL_S / 2)) == 1
    assert len(run.look(after_s=INTERVAL_S / 2)) == 2


def test_a_topic_that_is_gone_is_passed_over(run: Run) -> None:
    orders = run.topics.ends_of.pop("orders")

    assert run.look() == []
    run.topics.ends_of["orders"] = orders
    assert run.look() == [{0: 0}]


def test_a_broker_that_is_away_is_asked_again(run: Run) -> None:
    run.topics.away = True
    run.look()
    run.topics.away = False

    assert run.look() == [{0: 0}]


@pytest.mark.kafka
def test_what_is_published_are_the_committed_offsets_of_a_group(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    topic, group = create_topic("keyed", partitions=2), CheckpointedGroup(brokers)
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "stream-processor.checkpointed"})

    def published(offsets: Mapping[int, int]) -> bool:
        # The first coordinator of a broker may need a moment.
        with contextlib.suppress(KafkaException):
            group.commit(topic, offsets)
            partitions = reader.committed([TopicPartition(topic, number) for number in offsets], timeout=5)
            return {each.partition: each.offset for each in partitions} == offsets
        return False

    for offsets in ({0: 42, 1: 7}, {0: 0, 1: 0}):
        wait_until(partial(published, offsets), "the offsets are not there")
    reader.close()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker on which the processor may read the topic `keyed`, and nothing else yet."""
    with secured_broker(tmp_path_factory.mktemp("secured-broker")) as broker:
        broker.set_password("stream-processor", "secret")
        broker.allow("stream-processor", ["Read"], "topic", ["keyed"])
        topics.create_topic(broker.bootstrap, "keyed", partitions=1)
        yield broker


@pytest.mark.kafka
def test_a_group_that_acls_do_not_allow_is_named_and_topics_are_read_without_one(secured: SecuredBroker) -> None:
    settings = KafkaSettings.model_validate(secured.with_password("stream-processor"))
    group, said = CheckpointedGroup(settings), "do not allow Read on the group stream-processor.checkpointed"
    producer = Producer({"bootstrap.servers": secured.bootstrap})
    producer.produce("keyed", b"record")
    assert producer.flush(30) == 0

    wait_until(lambda: said in (group.refused() or ""), lambda: f"it says {group.refused()}")
    with pytest.raises(KafkaException, match=said):
        group.commit("keyed", {0: 1})
    assert [each.value() for each in read_records(settings, "keyed", {})] == [b"record"]

    secured.allow("stream-processor", ["Describe"], "group", ["stream-processor"])
    wait_until(lambda: said in (group.refused() or ""), lambda: f"it says {group.refused()}")

    secured.allow("stream-processor", ["Read"], "group", ["stream-processor"])
    wait_until(lambda: group.refused() is None, lambda: f"it says {group.refused()}")
    group.commit("keyed", {0: 1})
