"""What the changelog does every few seconds, while there is no broker."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from structlog.testing import capture_logs

from query_service.errors import NotServedError, StoreFailedError
from query_service.instance import wall_ms
from query_service.storage.changelog import Changelog
from query_service.storage.replica import Replica
from query_service.storage.steady_clock import SteadyClock
from query_service.storage.topic_facts import TopicFacts
from statecast_service.kafka import KafkaSettings, connect
from testkit.query_service import FakeRecord, ManualClock, OpenReplica, encoded_state, put
from testkit.waiting import wait_until_async

NO_BROKER = KafkaSettings(kafka_bootstrap="127.0.0.1:1")
PLAIN: dict[str, object] = {"format": "plain", "message": "json"}
YEAR = 365 * 86_400


class LateConsumer(Consumer):
    """Does not learn the end of a partition, as when its broker is away; notes which it has asked for."""

    def __init__(self, *settings: Any, **options: Any) -> None:
        super().__init__(*settings, **options)
        self.asked: list[int] = []

    def get_watermark_offsets(self, partition: TopicPartition, *_: object, **__: object) -> tuple[int, int]:
        self.asked.append(partition.partition)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def changelog_of(
    consumer: type[Consumer],
    reopen: Callable[[Replica, str | None], None],
    clock: SteadyClock | None = None,
    **fields: float,
) -> Changelog:
    facts, clock = TopicFacts(NO_BROKER, 3_600_000), clock or SteadyClock(wall_ms, time.monotonic, 0.0)
    return Changelog(lambda: connect(consumer, NO_BROKER, {"group.id": "rows"}), reopen, facts, clock, 1000, **fields)


def damage(replica: Replica, directory: Path) -> None:
    """Overwrites the beginning of each table, where its rows are."""
    replica.store.checkpoint(directory / "flushed")
    for table in (directory / "data").rglob("*.sst"):
        with table.open("r+b") as opened:
            opened.write(bytes(16))


@pytest.mark.parametrize("is_away", [False, True])
async def test_after_a_read_has_met_a_corrupt_block_the_partition_is_read_anew_unless_the_broker_is_away(
    open_replica: OpenReplica, tmp_path: Path, clock: ManualClock, is_away: bool
) -> None:
    replica, reopened = open_replica(), list[str | None]()
    replica.apply([put("a", 1, 0)], 1)
    damage(replica, tmp_path)
    changelog = changelog_of(Consumer, lambda _, set_aside_for: reopened.append(set_aside_for))
    with pytest.raises(NotServedError, match="the store is corrupt"):
        replica.read([b"a"])
    clock.now += 60 if is_away else 0
    with capture_logs() as logs:
        changelog.follow(replica)
        changelog.start()
        await wait_until_async(lambda: reopened or logs, "nobody notices it")
        changelog.stop()

    assert ["the store is corrupt" in (reason or "") for reason in reopened] == ([] if is_away else [True])
    assert ["the store is corrupt" in log.get("reason", "") for log in logs] == ([True] if is_away else [])


async def test_of_partitions_that_bring_nothing_one_a_round_is_asked_for_its_end(
    open_replica: OpenReplica, clock: ManualClock
) -> None:
    changelog = changelog_of(LateConsumer, lambda *_: None, stall_s=0.0)
    for partition in range(3):
        replica = open_replica(partition)
        replica.note_end_offset(5, clock.now)
        changelog.follow(replica)
    changelog._step()
    for _ in range(4):
        changelog._run_maintenance()
    changelog.consumer.close()

    assert isinstance(changelog.consumer, LateConsumer)
    assert changelog.consumer.asked == [0, 1, 2, 0]


class Arrived(FakeRecord):
    """A record as the changelog takes it."""

    def error(self) -> None:
        """Returns that it is none."""


async def test_a_full_disk_is_logged_once_until_it_takes_a_batch(
    open_replica: OpenReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog, replica = changelog_of(Consumer, lambda *_: None), open_replica()
    changelog.follow(replica)
    changelog._step()

    def arrive(offset: int) -> None:
        changelog._retries.clear()
        batch: list[Any] = [Arrived(b"a", encoded_state(offset + 1), offset)]
        changelog._handle_batch(replica.topic_partition, batch)

    full = Mock(side_effect=StoreFailedError("no space left on device"))
    with capture_logs() as logs:
        for offset in range(2):
            with monkeypatch.context() as disk:
                disk.setattr(replica.store, "write", full)
                for _ in range(3):
                    arrive(offset)
            arrive(offset)
    changelog.consumer.close()

    assert replica.progress.applied_offset == 1
    assert full.call_count == 6
    assert [log["reason"] for log in logs if "cannot store" in log["event"]] == ["no space left on device"] * 2


async def test_what_fails_again_and_again_is_logged_once(
    open_replica: OpenReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    changelog, replica = changelog_of(Consumer, lambda *_: None), open_replica()
    changelog.follow(replica)
    changelog._step()
    unknown = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    monkeypatch.setattr(changelog.facts, "topic_id", Mock(side_effect=unknown))
    monkeypatch.setattr(replica.store, "note_current", Mock(side_effect=StoreFailedError("no space left on device")))
    with capture_logs() as logs:
        for _ in range(3):
            changelog._reset(replica, "the topic no longer has the next record")
            changelog._run_maintenance()
    changelog.consumer.close()

    events = [log["event"] for log in logs if "store" in log]
    assert events == ["the broker does not know the topic; retrying", "maintenance of a store failed"]


async def test_no_row_is_purged_by_a_clock_that_may_be_ahead(
    open_replica: OpenReplica, clock: ManualClock, wall: ManualClock
) -> None:
    steady = SteadyClock(lambda: int(wall.now * 1000), clock, 600)
    changelog, replica = changelog_of(Consumer, lambda *_: None, steady), open_replica(**PLAIN, retain="1h")
    replica.wall_ms = steady
    changelog.follow(replica)
    changelog._step()
    ages_s = {b"old": 7200, b"row": 0, b"last": 0}
    records = [FakeRecord(key, b"{}", at, record_ms=steady() - s * 1000) for at, (key, s) in enumerate(ages_s.items())]
    replica.apply(records, 3)

    def rows_after(seconds: float, ahead_s: int = 0) -> set[bytes]:
        clock.now += seconds
        wall.now += seconds + ahead_s
        changelog._run_maintenance()
        return {key for key, _ in replica.store.scan(b"a", b"z")}

    assert rows_after(1) == {b"old", b"row", b"last"}, "nobody knows yet whether the clock is right"
    assert rows_after(600) == {b"row", b"last"}
    assert rows_after(60, ahead_s=YEAR) == {b"row", b"last"}
    assert replica.read([b"row"]) != [None]
    assert rows_after(60, ahead_s=-YEAR) == {b"row", b"last"}
    assert rows_after(3600) == {b"last"}, "callers must learn of a purge by the next record"
    changelog.consumer.close()
