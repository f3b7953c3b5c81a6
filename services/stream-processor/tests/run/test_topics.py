"""Waiting for Kafka and its topics."""

import contextlib
from collections.abc import Iterable
from unittest.mock import MagicMock
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from statecast_service.kafka import KafkaSettings
from stream_processor.errors import ConfigurationError
from stream_processor.run import topics as module
from stream_processor.run.topics import (
    Topics,
    Waiting,
    check_kept,
    headers_of,
    read_records,
    wait_while_missing,
    with_record_limits,
)
from stream_processor.shapes.table_join import TableJoinPipeline
from testkit.pytest_plugin import CreateTopic
from testkit.stream_processor.changes import INVOICE_CHANGES, INVOICE_ROWS, LOYALTY_OF_CHANGES
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.process import ProcessorOf, wait_until
from testkit.topics import create_topic


def test_it_waits_until_nothing_is_missing_and_says_what_is() -> None:
    missing, reasons = iter(["no topic b", None]), list[str]()

    assert wait_while_missing(lambda: next(missing), lambda _seconds: False, reasons.append, 0.5)
    assert reasons == ["no topic b"]


def test_it_gives_up_when_it_is_told_to_stop() -> None:
    assert not wait_while_missing(lambda: "no topic a", lambda _seconds: True, lambda _reason: None, 0.5)


def test_without_a_broker_it_says_so() -> None:
    topics = Topics(KafkaSettings(kafka_bootstrap="127.0.0.1:1"), timeout_s=0.2)

    assert topics.missing({"a": ["Read"]}) == "no answer from Kafka at 127.0.0.1:1"


def test_a_topic_for_small_records_only_is_refused(shipped: PipelineOf) -> None:
    def sizes(topics: Iterable[str], _: str) -> dict[str, str]:
        return {topic: "10000" if topic == "orders-by-key" else "1048588" for topic in topics}

    with pytest.raises(
        ConfigurationError, match=r"orders-by-key .* 10000 bytes: set its max\.message\.bytes to at least"
    ):
        with_record_limits(shipped("orders-by-key"), sizes)


def test_each_side_of_a_join_knows_how_large_its_letters_may_be(shipped: PipelineOf) -> None:
    def sizes(topics: Iterable[str], _: str) -> dict[str, str]:
        return {topic: str(100_000 + len(topic)) for topic in topics}

    join = with_record_limits(shipped("stores-with-sales"), sizes)

    assert isinstance(join, TableJoinPipeline)
    letters = ["stores-by-key.dead-letter", "sales-by-store.dead-letter"]
    assert [each.max_dead_letter_bytes for each in join.sides] == [100_000 + len(each) for each in letters]
    assert {each.max_payload_bytes for each in join.sides} == {join.max_payload_bytes}


def test_a_joined_table_that_may_forget_too_soon_is_refused(shipped: PipelineOf) -> None:
    def lags(topics: Iterable[str], _: str) -> dict[str, str]:
        return {topic: "0" if topic == "sales-by-store" else "3600000" for topic in topics}

    with pytest.raises(
        ConfigurationError, match=r"^sales-by-store is read as a table, and may be compacted after 0 ms"
    ):
        check_kept(shipped("stores-with-sales"), lags)


def test_a_table_of_events_is_refused_with_what_to_do(shipped: PipelineOf) -> None:
    def policies(topics: Iterable[str], key: str) -> dict[str, str]:
        return dict.fromkeys(topics, "delete" if key == "cleanup.policy" else "0")

    source = {"topic": "invoices", "message": "statecast.sales.v1.Invoice", "format": "table", "values": "json"}

    with pytest.raises(ConfigurationError, match=r"^invoices is read as a table and is not .* source.format: events$"):
        check_kept(shipped("invoices-by-store", source=source), policies)
    check_kept(shipped("home-delivery", source=source), policies)


@pytest.mark.parametrize("policy", ["compact", "delete,compact"])
def test_a_compacted_topic_of_changes_is_refused_but_for_routes(shipped: PipelineOf, policy: str) -> None:
    def policies(topics: Iterable[str], _: str) -> dict[str, str]:
        return dict.fromkeys(topics, policy)

    check_kept(shipped("home-delivery", source=INVOICE_CHANGES), policies)
    refused = [
        *map(shipped, ("orders-by-key", "orders-by-customer")),
        shipped("rewards-by-customer", source=INVOICE_ROWS),
        shipped("loyalty-notifications", **LOYALTY_OF_CHANGES),
    ]
    for pipeline in refused:
        with pytest.raises(ConfigurationError, match=r"is read as changes and is compacted .*Set its cleanup\.policy"):
            check_kept(pipeline, policies)


def test_a_compacted_topic_of_events_is_refused(shipped: PipelineOf) -> None:
    source = {"topic": "sold", "message": "statecast.sales.v1.Invoice", "format": "events"}
    for name in ("home-delivery", "rewards-by-customer"):
        check_kept(shipped(name, source=source), lambda topics, _: dict.fromkeys(topics, "delete"))
        with pytest.raises(ConfigurationError, match=r"^sold is read as events and is compacted .* would vanish"):
            check_kept(shipped(name, source=source), lambda topics, _: dict.fromkeys(topics, "compact"))


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """A consumer of the topic `letters`, which has one partition with three records."""
    consumer = MagicMock()
    consumer.list_topics.return_value.topics = {"letters": MagicMock(partitions=[0])}
    consumer.get_watermark_offsets.return_value = (0, 3)
    consumer.poll.return_value.partition.return_value = 0
    monkeypatch.setattr(module, "connect", lambda *_: consumer)
    return consumer


def test_a_topic_that_may_not_be_read_is_no_empty_one(consumer: MagicMock) -> None:
    consumer.poll.return_value.error.return_value = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    with pytest.raises(KafkaException, match="the ACLs of Kafka do not allow Read on the topic letters"):
        list(read_records(KafkaSettings(), "letters", {}))
    consumer.close.assert_called_once()


def test_reading_waits_for_the_leader_of_a_new_topic(consumer: MagicMock) -> None:
    leaderless = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
    consumer.get_watermark_offsets.side_effect = [leaderless, leaderless, (0, 0)]

    assert list(read_records(KafkaSettings(), "letters", {})) == []
    assert consumer.get_watermark_offsets.call_count == 3


def test_a_topic_that_stays_without_a_leader_cannot_be_read(consumer: MagicMock) -> None:
    consumer.get_watermark_offsets.side_effect = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))

    with pytest.raises(KafkaException, match="LEADER_NOT_AVAILABLE"):
        list(read_records(KafkaSettings(), "letters", {}, timeout_s=0))


def test_reading_ends_where_the_partitions_do_which_are_read_side_by_side(consumer: MagicMock) -> None:
    consumer.list_topics.return_value.topics = {"letters": MagicMock(partitions=range(200))}
    consumer.poll.return_value.error.return_value = KafkaError(KafkaError._PARTITION_EOF)
    consumer.poll.return_value.partition.side_effect = range(200)

    assert list(read_records(KafkaSettings(), "letters", {})) == []
    # Each assignment takes the client most of a second.
    consumer.assign.assert_called_once()


def test_the_marker_of_a_transaction_is_no_record(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    topic = create_topic("transactions", partitions=3)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic})
    producer.init_transactions()
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(topic, b"record", partition=0)
        producer.commit_transaction()
    plain = Producer({"bootstrap.servers": kafka})
    plain.produce(topic, b"record", partition=1)
    plain.flush()
    topics = Topics(brokers)

    assert topics.ends(topic) == {0: 4, 1: 1, 2: 0}
    assert topics.readable_ends(topic) == {0: 3, 1: 1, 2: 0}
    assert topics.waiting([topic, "unknown"]) == {topic: {}}
    assert topics.ends_of([topic, "unknown"]) == {topic: topics.ends(topic)}
    with pytest.raises(KafkaException, match="no topic unknown"):
        topics.ends("unknown")


def test_records_of_an_open_transaction_wait_and_those_of_an_aborted_one_are_none(
    brokers: KafkaSettings, kafka: str, create_topic: CreateTopic
) -> None:
    topic, topics = create_topic("transactions", partitions=2), Topics(brokers)
    producer, plain = (
        Producer({"bootstrap.servers": kafka, "transactional.id": topic}),
        Producer({"bootstrap.servers": kafka}),
    )
    producer.init_transactions()
    producer.begin_transaction()
    for each in (producer, plain):
        each.produce(topic, b"record", partition=0)
        each.flush()

    assert topics.waiting([topic]) == {topic: {0: Waiting(since=0, records=2)}}
    assert topics.ends(topic) == topics.readable_ends(topic) == {0: 0, 1: 0}
    producer.abort_transaction()
    wait_until(lambda: topics.waiting([topic]) == {topic: {}}, lambda: "the transaction is open")
    assert topics.ends(topic) == {0: 3, 1: 0}
    assert topics.readable_ends(topic) == {0: 2, 1: 0}
    assert [each.offset() for each in read_records(brokers, topic, {})] == [1]


def test_it_knows_what_the_broker_has(brokers: KafkaSettings, kafka: str, create_topic: CreateTopic) -> None:
    topic = create_topic("known", partitions=3)
    topics = Topics(brokers)

    assert topics.missing({topic: ["Read", "Write"]}) is None
    assert topics.missing({topic: [], "unknown": []}) == f"no topic unknown at {kafka}"
    assert topics.states([topic, "unknown"]).keys() == {topic}
    assert topics.states([topic])[topic].partitions == 3
    assert len(topics.states([topic])[topic].id) == 22

    def has_an_end() -> bool:
        # The leader of a new partition may need a moment.
        with contextlib.suppress(KafkaException):
            return topics.ends(topic) == {0: 0, 1: 0, 2: 0}
        return False

    wait_until(has_an_end, lambda: "no end")


def test_a_process_on_a_compacted_topic_of_changes_ends_at_once(kafka: str, processor_of: ProcessorOf) -> None:
    name = f"compacted-{uuid4().hex[:8]}"
    create_topic(kafka, name, 1, {"cleanup.policy": "compact"})
    for topic in (f"{name}.dead-letter", f"{name}-by-key"):
        create_topic(kafka, topic, 1)
    source = {"topic": name, "message": "statecast.orders.v1.OrderChange"}
    content = {"source": source, "group_by": "order_id", "keep": "latest", "sink": {"topic": f"{name}-by-key"}}
    processor = processor_of({"name": name, **content})

    processor.start()

    assert processor.wait_end() == 2
    assert f"{name} is read as changes and is compacted" in processor.log


def test_a_header_name_that_the_client_cannot_read_leaves_no_headers() -> None:
    """Kafka's client raises this for a name that is not UTF-8, and cannot write one."""
    message = MagicMock()
    message.headers.side_effect = SystemError

    assert headers_of(message) == []
