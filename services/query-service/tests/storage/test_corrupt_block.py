"""A block on disk that is corrupt is found by a read, and not by what is written."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from structlog.testing import capture_logs

from query_service.errors import NotServedError
from query_service.storage.changelog import Changelog
from query_service.storage.replica import Replica
from query_service.storage.topic_facts import TopicFacts
from statecast_service.kafka import KafkaSettings, connect
from testkit.query_service import ManualClock, put
from testkit.waiting import wait_until_async

NO_BROKER = KafkaSettings(kafka_bootstrap="127.0.0.1:1")


def damage(replica: Replica, directory: Path) -> None:
    """Overwrites the beginning of each table, where its rows are."""
    replica.store.checkpoint(directory / "flushed")
    for table in (directory / "data").rglob("*.sst"):
        with table.open("r+b") as opened:
            opened.write(bytes(16))


@pytest.mark.parametrize("is_away", [False, True])
async def test_after_a_read_has_met_a_corrupt_block_the_partition_is_read_anew_unless_the_broker_is_away(
    open_replica: Callable[..., Replica], tmp_path: Path, clock: ManualClock, is_away: bool
) -> None:
    replica, reopened = open_replica(), list[str | None]()
    replica.apply([put("a", 1, 0)], 1)
    damage(replica, tmp_path)
    facts = TopicFacts(NO_BROKER, 3_600_000)
    changelog = Changelog(
        lambda: connect(Consumer, NO_BROKER, {"group.id": "rows"}),
        lambda _, set_aside_for: reopened.append(set_aside_for),
        facts,
        lambda: time.time_ns() // 1_000_000,
        1000,
    )
    with pytest.raises(NotServedError, match="the store is corrupt"):
        replica.read([b"a"])
    clock.now += 60 if is_away else 0
    with capture_logs() as logs:
        changelog.follow(replica)
        changelog.start()
        await wait_until_async(lambda: reopened or logs, "nobody notices it")
        changelog.stop(10)

    assert ["the store is corrupt" in (reason or "") for reason in reopened] == ([] if is_away else [True])
    assert ["the store is corrupt" in log.get("reason", "") for log in logs] == ([True] if is_away else [])
