"""The publisher, its record of the changes that Kafka has acknowledged, and the wait for topics."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest
import structlog
from confluent_kafka import KafkaError, Producer, murmur2
from prometheus_client import CollectorRegistry

from cdc_simulator.change_events import LoggedChange
from cdc_simulator.domains.invoices import INVOICES, CustomerType, InvoiceRow, Line
from cdc_simulator.domains.orders import ORDERS, OrderRow
from cdc_simulator.errors import PublishError
from cdc_simulator.metrics import Metrics, Readiness
from cdc_simulator.publisher import MAX_IN_FLIGHT, Acknowledgements, Publisher
from statecast.orders.v1.order_pb2 import OrderChange
from statecast_service.kafka import KafkaSettings, connect
from testkit.cdc_simulator import ManualClock, MemoryProducer


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


@pytest.fixture
def producer() -> MemoryProducer:
    return MemoryProducer()


@pytest.fixture
def publisher(metrics: Metrics, producer: MemoryProducer) -> Publisher:
    def connect(_: object, on_error: Callable[[KafkaError], None]) -> MemoryProducer:
        producer.on_error = on_error
        return producer

    return Publisher("broker:9092", {"orders": "orders"}, 77, 10, metrics, connect)


def changes(row: OrderRow, first: int, last: int) -> Sequence[LoggedChange]:
    return [
        LoggedChange(ORDERS, lsn, "tx-1", 5, False, row, row._replace(number=lsn)) for lsn in range(first, last + 1)
    ]


def poll_until(publisher: Publisher, acknowledged_lsn: int) -> None:
    while publisher.acknowledged_lsn < acknowledged_lsn:
        publisher.poll()


def test_a_record_has_the_order_as_its_key_and_the_change_as_its_value(
    publisher: Publisher, producer: MemoryProducer, row: OrderRow
) -> None:
    publisher.send(changes(row, 11, 11), 99)

    ((topic, value, key),) = producer.records
    change = OrderChange.FromString(value)
    assert (topic, key) == ("orders", b"order-000011")
    assert (change.source.epoch, change.source.log_sequence_number) == (77, 11)
    assert change.captured_at.ToMicroseconds() == 99


def test_a_deleted_event_is_acknowledged_and_not_sent(metrics: Metrics, producer: MemoryProducer) -> None:
    invoice = InvoiceRow(1, "store-01", "4000", CustomerType.PRIME, None, (Line("a", "b", 1, 2),), 2, "INR", 3)
    publisher = Publisher("broker:9092", {"invoices": "invoices"}, 77, 10, metrics, lambda *_: producer)
    made = LoggedChange(INVOICES, 11, "tx-1", 5, False, None, invoice)
    publisher.send([made, made._replace(lsn=12, before=invoice, after=None)], 0)
    sent = list(producer.records)
    publisher.poll()

    assert sent == [("invoices", INVOICES.message(invoice).SerializeToString(), b"store-01")]
    assert (publisher.sent_lsn, publisher.acknowledged_lsn, publisher.room) == (12, 12, MAX_IN_FLIGHT)


def test_only_what_is_delivered_counts_as_acknowledged(
    publisher: Publisher, producer: MemoryProducer, row: OrderRow, metrics: Metrics
) -> None:
    producer.away = True
    publisher.send(changes(row, 11, 20), 0)
    publisher.poll()
    while_away = (publisher.sent_lsn, publisher.acknowledged_lsn, publisher.room)
    producer.away = False
    publisher.poll()

    assert while_away == (20, 10, MAX_IN_FLIGHT - 10)
    assert (publisher.acknowledged_lsn, publisher.room) == (20, MAX_IN_FLIGHT)
    published = metrics.registry.get_sample_value("cdc_simulator_changes_published_total", {"operation": "update"})
    assert published == 10


def test_a_change_that_kafka_refuses_ends_it_with_the_change_and_the_reason(
    publisher: Publisher, producer: MemoryProducer, row: OrderRow
) -> None:
    producer.refusal = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    publisher.send(changes(row, 11, 11), 0)

    with pytest.raises(PublishError, match=r"change 11 of order-000011 for topic orders: .*too large"):
        publisher.poll()
    assert publisher.acknowledged_lsn == 10


def test_a_fatal_error_of_the_client_ends_it(publisher: Publisher, producer: MemoryProducer) -> None:
    producer.on_error(KafkaError(KafkaError._FATAL, "fenced", fatal=True))

    with pytest.raises(PublishError, match="the Kafka client cannot go on: fenced"):
        publisher.poll()


def test_an_error_that_passes_is_counted_and_nothing_more(
    publisher: Publisher, producer: MemoryProducer, metrics: Metrics
) -> None:
    producer.on_error(KafkaError(KafkaError._TRANSPORT, "refused"))
    publisher.poll()

    assert metrics.registry.get_sample_value("cdc_simulator_broker_errors_total") == 1


def test_a_real_broker_gets_each_change_once_in_the_partition_of_its_key(
    brokers: KafkaSettings,
    create_topic: Callable[..., str],
    read_topic: Callable[[str], list[tuple[int, bytes, bytes]]],
    metrics: Metrics,
    row: OrderRow,
) -> None:
    topic = create_topic("published")
    publisher = Publisher(
        brokers.kafka_bootstrap, {"orders": topic}, 77, 0, metrics, partial(connect, Producer, brokers)
    )
    publisher.send(changes(row, 1, 500), 0)
    poll_until(publisher, 500)

    records = [(partition, key, OrderChange.FromString(value)) for partition, key, value in read_topic(topic)]
    assert sorted(change.source.log_sequence_number for _, _, change in records) == list(range(1, 501))
    for partition, key, change in records:
        assert key.decode() == change.after.order_id
        assert partition == murmur2(key, 4)


def test_a_real_record_that_is_too_large_is_named(
    brokers: KafkaSettings, create_topic: Callable[..., str], metrics: Metrics, row: OrderRow
) -> None:
    topic = create_topic("small", max_message_bytes="200")
    publisher = Publisher(
        brokers.kafka_bootstrap, {"orders": topic}, 77, 0, metrics, partial(connect, Producer, brokers)
    )
    noise = "".join(Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=2000))
    publisher.send(changes(row._replace(tracking_number=noise), 1, 1), 0)

    with pytest.raises(PublishError, match="Kafka refuses change 1 of order-000001"):
        poll_until(publisher, 1)


def test_a_gap_holds_acknowledgements_back_until_it_is_filled() -> None:
    acknowledgements = Acknowledgements(10)
    acknowledgements.add(12)
    acknowledgements.add(13)
    before = acknowledgements.lsn
    acknowledgements.add(11)

    assert (before, acknowledgements.lsn) == (10, 13)


def test_acknowledgements_in_any_order_end_at_the_last() -> None:
    numbers = list(range(1, 1001))
    Random(3).shuffle(numbers)
    acknowledgements = Acknowledgements(0)
    missing = set(numbers)
    for number in numbers:
        acknowledgements.add(number)
        missing.discard(number)

        assert acknowledgements.lsn == min(missing, default=1001) - 1


class ChangingClock(ManualClock):
    """Changes the topics with the n-th sleep."""

    def __init__(self, producer: MemoryProducer, topic_lists: list[dict[str, object] | None]) -> None:
        super().__init__()
        self.producer = producer
        self.topic_lists = topic_lists
        self.reasons: list[str | None] = []
        self.readiness = Readiness("starting")

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.reasons.append(self.readiness.reason)
        self.producer.topics = self.topic_lists.pop(0)


def wait(clock: ChangingClock, stopping: bool = False) -> bool:
    topics = {"matches": "matches", "markets": "markets"}
    publisher = Publisher("broker:9092", topics, 1, 0, Metrics(CollectorRegistry()), lambda *_: clock.producer)
    return publisher.wait_for_topics(clock.readiness, clock, lambda: stopping)


def test_the_simulator_waits_for_the_broker_then_for_each_topic_and_says_for_which() -> None:
    producer = MemoryProducer()
    producer.topics = None
    clock = ChangingClock(producer, [None, {"matches": 1}, {"matches": 1, "markets": 1}])
    came = wait(clock)

    assert came
    assert clock.readiness.reason == clock.reasons[-1], "it is ready only once Kafka has the snapshot"
    assert clock.reasons == [
        "no broker answers at broker:9092",
        "no broker answers at broker:9092",
        "topic markets does not exist at broker:9092: run kafka-topics infra/kafka/topics.yaml",
    ]


def test_the_reason_is_logged_once_and_again_every_ten_seconds() -> None:
    producer = MemoryProducer()
    producer.topics = None
    with structlog.testing.capture_logs() as logs:
        wait(ChangingClock(producer, [*[None] * 60, {"matches": 1, "markets": 1}]))

    assert str(logs).count("no broker answers") == 2


def test_the_wait_for_topics_ends_when_the_simulator_is_stopped() -> None:
    producer = MemoryProducer()
    producer.topics = None

    assert not wait(ChangingClock(producer, []), stopping=True)
