"""The log is read and applied, on a real broker."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__
from structlog.testing import capture_logs

from query_service.cluster.placement import ReplicaFactory
from query_service.errors import StoreFailedError, StoreUnusableError
from query_service.metrics import Metrics
from query_service.storage import changelog
from query_service.storage.changelog import Changelog
from query_service.storage.engine import Rows
from query_service.storage.progress import EndOffset
from query_service.storage.replica import Replica
from query_service.storage.steady_clock import SteadyClock
from query_service.storage.store_directory import Topic
from query_service.storage.store_keys import HEADER_SIZE
from query_service.storage.topic_facts import TopicFacts
from statecast_service.kafka import KafkaSettings
from testkit.pytest_plugin import CreateTopic
from testkit.query_service import ManualClock, OpenDirectory, encoded_state, store_definition
from testkit.waiting import wait_until


class DeafConsumer(Consumer):
    """Brings nothing while it is deaf, as a client that takes its partitions for unknown."""

    deaf = False

    def poll(self, timeout: float = -1) -> Message | None:
        message = super().poll(timeout)
        return None if self.deaf else message


class Log:
    """One partition of a real topic, and the replica that follows it."""

    def __init__(
        self, kafka: str, topic: str, factory: ReplicaFactory, changelog: Changelog, facts: TopicFacts
    ) -> None:
        self.topic = topic
        self.changelog = changelog
        self.facts = facts
        incarnation = Topic(topic, facts.topic_id(topic), 77, 1)
        self._open = partial(factory.open, store_definition(topic=topic), incarnation, 0)
        self._producer = Producer({"bootstrap.servers": kafka})
        self._admin = AdminClient({"bootstrap.servers": kafka})
        self.replica = self._open(EndOffset(0, 0.0))

    def write(self, key: str, sequence: int, payload: bytes = b"row") -> None:
        self._producer.produce(self.topic, encoded_state(sequence, payload), key.encode(), partition=0)
        self._producer.flush(10)

    def write_in_a_transaction(self, kafka: str, key: str) -> None:
        producer = Producer({"bootstrap.servers": kafka, "transactional.id": self.topic})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(self.topic, encoded_state(1, b"row"), key.encode(), partition=0)
        producer.commit_transaction()

    def drop_before(self, offset: int) -> None:
        start = TopicPartition(self.topic, 0, offset)
        for done in self._admin.delete_records([start]).values():
            done.result()

    def make_topic_anew(self) -> None:
        self._admin.delete_topics([self.topic])[self.topic].result()
        wait_until(lambda: self.topic not in self._admin.list_topics(timeout=5).topics, "the topic is not gone")
        new = NewTopic(self.topic, num_partitions=1, replication_factor=1)
        self._admin.create_topics([new])[self.topic].result()

    def until_applied(self, offset: int) -> None:
        """Waits until everything up to this offset has been applied, this one included."""

        def applied() -> int:
            return self.replica.progress.applied_offset

        wait_until(lambda: applied() >= offset, lambda: f"{applied()} is applied", timeout_s=30)

    def restart(self) -> None:
        """Closes the replica and opens it again from the disk, without following it."""
        self.changelog.unfollow(self.replica).result(30)
        self.replica = self.open_again()

    def open_again(self) -> Replica:
        return self._open(EndOffset(0, 0.0))

    def payload(self, key: bytes) -> bytes | None:
        value = self.replica.store.get_many([key])[0]
        return None if value is None else value[HEADER_SIZE:]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def log(
    brokers: KafkaSettings,
    kafka: str,
    create_topic: CreateTopic,
    open_directory: OpenDirectory,
    metrics: Metrics,
) -> Iterator[Log]:
    loop, directory = asyncio.new_event_loop(), open_directory()
    factory = ReplicaFactory(directory, directory.wall_ms, loop, metrics, 60.0, lambda: 100)
    options = {
        "bootstrap.servers": kafka,
        "group.id": "unused",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    facts = TopicFacts(brokers, 3_600_000)
    clock = SteadyClock(now_ms, time.monotonic, 0.0)
    changelog = Changelog(lambda: DeafConsumer(options), factory.reopen, facts, clock, 600_000, stall_s=1.0)
    changelog.start()
    yield Log(kafka, create_topic("log", partitions=1), factory, changelog, facts)
    changelog.stop()
    loop.close()


def test_records_are_applied_as_they_come(log: Log) -> None:
    log.changelog.follow(log.replica)
    log.write("a", 1, b"one")
    log.until_applied(0)
    log.write("a", 2, b"two")
    log.until_applied(1)

    assert log.payload(b"a") == b"two"


def test_a_partition_that_brings_nothing_while_its_topic_grows_is_read_by_another_consumer(log: Log) -> None:
    log.changelog.follow(log.replica)
    log.write("a", 1)
    log.until_applied(0)
    log.replica.progress.note_end_offset(1, time.monotonic())
    deaf = log.changelog.consumer
    assert isinstance(deaf, DeafConsumer)
    deaf.deaf = True
    deadline = time.monotonic() + 60
    sequence = 1
    while log.changelog.consumer is deaf and time.monotonic() < deadline:
        sequence += 1
        log.write("a", sequence)
        log.replica.progress.note_end_offset(sequence, time.monotonic())
        time.sleep(0.2)
    log.until_applied(sequence - 1)

    assert log.replica.progress.lag_records == 0


def test_reading_goes_on_where_the_store_stopped(log: Log) -> None:
    log.changelog.follow(log.replica)
    log.write("a", 1)
    log.until_applied(0)
    log.restart()
    log.write("b", 1)
    log.drop_before(1)
    assert log.replica.store.next_offset == 1
    log.changelog.follow(log.replica)
    log.until_applied(1)

    assert (log.payload(b"a"), log.payload(b"b")) == (b"row", b"row")


def test_a_log_that_no_longer_has_the_next_record_is_read_anew(log: Log, tmp_path: Path) -> None:
    log.changelog.follow(log.replica)
    log.write("lost", 1)
    log.until_applied(0)
    log.restart()
    for number in range(3):
        log.write(f"k{number}", 1)
    log.drop_before(3)
    log.changelog.follow(log.replica)
    log.until_applied(3)

    assert log.payload(b"lost") is None
    assert log.payload(b"k2") == b"row"
    assert len(list((tmp_path / "data" / "set-aside").iterdir())) == 1


def test_rows_of_a_topic_that_was_made_anew_stay_until_the_replica_is_closed(log: Log) -> None:
    log.changelog.follow(log.replica)
    for number in range(3):
        log.write(f"k{number}", 1)
    log.until_applied(2)
    with capture_logs() as logs:
        log.make_topic_anew()
        log.write("new", 1)
        wait_until(lambda: any("no longer has" in entry["event"] for entry in logs), lambda: str(logs), timeout_s=60)
        log.changelog.unfollow(log.replica).result(30)
    again = log.open_again()

    assert [value is not None for value in again.store.get_many([b"k0", b"k2", b"new"])] == [True, True, False]
    again.store.close()


def test_a_replica_that_lagged_too_long_to_know_of_all_deletions_is_read_anew(
    log: Log, kafka: str, wall: ManualClock
) -> None:
    log.changelog.follow(log.replica)
    log.write("deleted", 1)
    log.until_applied(0)
    log.restart()
    log.drop_before(1)
    log.write_in_a_transaction(kafka, "a")
    log.write("b", 1)  # the transaction's end leaves a gap, as a deletion that compaction has removed
    log.facts.resume_limit_ms = 0
    wall.now += 1
    log.changelog.follow(log.replica)
    log.until_applied(3)

    assert log.payload(b"deleted") is None
    assert (log.payload(b"a"), log.payload(b"b")) == (b"row", b"row")


def test_an_offset_beyond_the_end_is_of_another_log_and_is_read_anew(log: Log) -> None:
    log.replica.apply([], 1000)
    log.write("a", 1)
    log.changelog.follow(log.replica)
    wait_until(lambda: log.replica.progress.applied_offset == 0, "the log is not read anew", 30)

    assert log.payload(b"a") == b"row"


def test_the_end_counts_as_applied_although_its_record_is_no_row(log: Log, kafka: str) -> None:
    log.changelog.follow(log.replica)
    log.write_in_a_transaction(kafka, "a")
    log.until_applied(1)  # offset 1 is the transaction's marker

    assert log.payload(b"a") == b"row"


def test_a_store_that_turns_out_corrupt_is_set_aside_and_read_anew(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.changelog.follow(log.replica)
    log.write("a", 1, b"one")
    log.until_applied(0)
    store = log.replica.store
    monkeypatch.setattr(store._engine, "get_many", corrupt)
    log.write("b", 1)
    wait_until(
        lambda: log.replica.store is not store and log.replica.progress.applied_offset == 1, "it is not read anew"
    )

    assert (log.payload(b"a"), log.payload(b"b")) == (b"one", b"row")


def test_a_disk_that_refuses_is_tried_again_until_it_takes_the_batch(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.changelog.follow(log.replica)
    log.until_applied(-1)
    failures, write = iter(range(2)), log.replica.store._engine.write

    def write_to_a_full_disk(puts: Rows, deletes: Iterable[bytes] = (), *, durable: bool = True) -> None:
        if next(failures, None) is not None:
            raise StoreFailedError("no space left on device")
        write(puts, deletes, durable=durable)

    monkeypatch.setattr(log.replica.store._engine, "write", write_to_a_full_disk)
    log.write("a", 1)
    log.until_applied(0)

    assert next(failures, None) is None
    assert log.payload(b"a") == b"row"


def test_while_no_empty_store_can_be_made_the_other_work_goes_on(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "_MAINTENANCE_INTERVAL_S", 0.05)
    failures, reopen = iter(range(2)), log.changelog.reopen

    def reopen_on_a_full_disk(replica: Replica, set_aside_for: str | None) -> None:
        if next(failures, None) is None:
            return reopen(replica, set_aside_for)
        replica.store.close()
        raise StoreFailedError("no space left on device")

    monkeypatch.setattr(log.changelog, "reopen", reopen_on_a_full_disk)
    log.changelog._next_maintenance = 0.0
    log.changelog.follow(log.replica)
    log.write("a", 1)
    log.until_applied(0)
    monkeypatch.setattr(log.replica.store._engine, "get_many", corrupt)
    log.write("b", 1)
    wait_until(lambda: log.replica.progress.applied_offset == 1, lambda: str(log.changelog.is_alive()), timeout_s=60)

    assert (log.payload(b"a"), log.payload(b"b")) == (b"row", b"row")


def corrupt(keys: list[bytes]) -> list[bytes | None]:
    raise StoreUnusableError("block checksum mismatch")


def test_a_stop_ends_when_all_stores_are_closed(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    is_closing, may_close, close = Event(), Event(), log.replica.store.close

    def close_slowly() -> None:
        is_closing.set()
        assert may_close.wait(30)
        close()

    monkeypatch.setattr(log.replica.store, "close", close_slowly)
    log.changelog.follow(log.replica)
    log.write("a", 1)
    log.until_applied(0)
    stopping = Thread(target=log.changelog.stop)
    stopping.start()
    assert is_closing.wait(30)
    stopping.join(0.1)

    assert stopping.is_alive()
    may_close.set()
    stopping.join(30)
    assert not stopping.is_alive()
