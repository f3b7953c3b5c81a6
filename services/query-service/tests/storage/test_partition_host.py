"""A partition that this instance holds."""

from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from query_service.errors import NotServedError
from query_service.metrics import Metrics
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_keys import HEADER_SIZE, header_of
from query_service.testing import FakeRecord, ManualClock, put, tombstone

OpenHost = Callable[..., PartitionHost]


def payload(host: PartitionHost, key: bytes) -> bytes | None:
    value = host.read([key])[0]
    return None if value is None or header_of(value).deleted else value[HEADER_SIZE:]


def counted(metrics: Metrics, outcome: str) -> float | None:
    registry: CollectorRegistry = metrics.registry
    labels = {"store": "orders-by-key", "outcome": outcome}
    return registry.get_sample_value("query_service_records_total", labels)


async def test_it_applies_what_is_newer_and_counts_what_is_stale(open_host: OpenHost, metrics: Metrics) -> None:
    host = open_host()
    host.apply([put("a", 1, 0, b"one"), put("a", 2, 1, b"two"), put("a", 1, 2, b"one")], 3)

    assert payload(host, b"a") == b"two"
    assert host.progress.current_through == 2
    assert (counted(metrics, "applied"), counted(metrics, "stale")) == (2, 1)


async def test_the_position_of_a_key_is_the_record_that_was_applied(open_host: OpenHost) -> None:
    host = open_host()
    host.apply([put("a", 5, 10)], 11)
    host.apply([put("a", 5, 20), put("a", 4, 21)], 22)

    assert header_of(host.read([b"a"])[0] or b"").offset == 10


async def test_a_poison_record_is_skipped_and_the_rest_is_applied(open_host: OpenHost, metrics: Metrics) -> None:
    host = open_host()
    host.apply([put("a", 1, 0), FakeRecord(b"b", b"\xff\xff", 1), FakeRecord(None, b"", 2), put("c", 1, 3)], 4)

    assert (payload(host, b"a"), payload(host, b"c")) == (b"row", b"row")
    assert host.progress.current_through == 3
    assert counted(metrics, "poison") == 2


async def test_a_batch_of_poison_alone_still_moves_on(open_host: OpenHost) -> None:
    host = open_host()
    host.apply([FakeRecord(b"b", b"\xff\xff", 0)], 1)

    assert host.store.next_offset == 1


async def test_a_replay_does_not_bring_a_deleted_row_back(open_host: OpenHost) -> None:
    host = open_host()
    log = [put("a", 1, 0), put("a", 2, 1), tombstone("a", 3, 2)]
    host.apply(log, 3)
    host.apply([put("a", 1, 3), put("a", 2, 4)], 5)

    assert payload(host, b"a") is None


async def test_a_row_that_is_made_again_stands(open_host: OpenHost) -> None:
    host = open_host()
    host.apply([tombstone("a", 3, 0), put("a", 4, 1, b"again")], 2)

    assert payload(host, b"a") == b"again"


async def test_a_deletion_that_is_older_than_the_row_is_stale(open_host: OpenHost) -> None:
    host = open_host()
    host.apply([put("a", 4, 0), tombstone("a", 3, 1)], 2)

    assert payload(host, b"a") == b"row"


async def test_a_higher_epoch_may_bring_a_lower_sequence(open_host: OpenHost) -> None:
    host = open_host()
    host.apply([put("a", 900, 0, b"old"), put("a", 1, 1, b"new", epoch=2)], 2)

    assert payload(host, b"a") == b"new"


async def test_it_says_how_fresh_it_is(open_host: OpenHost, clock: ManualClock) -> None:
    host = open_host(partition=3)
    host.apply([put("a", 1, 0)], 1)
    host.saw_end(5, clock.now)
    clock.now += 0.5
    freshness = host.freshness("query-1")

    assert (freshness.partition, freshness.lag_records, freshness.lag_ms) == (3, 4, 501)
    assert (freshness.current_through.epoch, freshness.current_through.offset) == (77, 0)
    assert freshness.answered_by == "query-1"


async def test_the_end_of_the_log_counts_as_reached_although_no_record_stands_there(open_host: OpenHost) -> None:
    host = open_host()
    host.saw_end(9, 0)
    host.reached(9)

    assert host.progress.lag_records == 0
    assert host.store.next_offset == 9


async def test_tending_forgets_old_deletions_and_notes_the_time(open_host: OpenHost, wall: ManualClock) -> None:
    host = open_host()
    host.apply([tombstone("a", 1, 0)], 1)
    wall.now += 100
    host.tend(int(wall.now * 1000) - 50_000, 10)

    assert host.read([b"a"]) == [None]
    assert host.store.current_ms == int(wall.now * 1000) - host.progress.lag_ms


async def test_reading_a_store_that_has_moved_away_sends_the_caller_to_another_replica(open_host: OpenHost) -> None:
    host = open_host()
    host.store.close()

    with pytest.raises(NotServedError):
        host.read([b"a"])
    with pytest.raises(NotServedError):
        list(host.scan(b"a", b"b", reverse=False))


PLAIN: dict[str, object] = {"format": "plain", "message": "json"}


async def test_a_plain_store_keeps_the_newest_value_of_each_key(open_host: OpenHost, metrics: Metrics) -> None:
    host = open_host(**PLAIN)
    host.apply([FakeRecord(b"a", b"one", 0), FakeRecord(b"a", b"two", 1), FakeRecord(b"b", b"x", 2)], 3)
    host.apply([FakeRecord(b"b", None, 3), FakeRecord(None, b"y", 4)], 5)

    assert (payload(host, b"a"), payload(host, b"b")) == (b"two", None)
    assert (counted(metrics, "applied"), counted(metrics, "poison")) == (4, 1)


async def test_a_row_is_absent_as_soon_as_its_record_is_too_old(open_host: OpenHost, wall: ManualClock) -> None:
    host = open_host(**PLAIN, retain="1h")
    now_ms = int(wall.now * 1000)
    host.apply([FakeRecord(b"a", b"old", 0, record_ms=now_ms), FakeRecord(b"b", b"new", 1, record_ms=now_ms + 1)], 2)
    wall.now += 3600
    assert payload(host, b"a") == b"old"
    wall.now += 0.001
    hidden = [header_of(value).deleted for _, value in host.scan(b"a", b"z", reverse=False)]

    assert (payload(host, b"a"), payload(host, b"b")) == (None, b"new")
    assert hidden == [True, False]


async def test_tending_purges_what_is_too_old_a_few_at_a_time(open_host: OpenHost, wall: ManualClock) -> None:
    host = open_host(**PLAIN, retain="1h")
    now_ms = int(wall.now * 1000)
    host.apply([FakeRecord(b"%d" % number, b"x", number, record_ms=now_ms) for number in range(5)], 5)
    wall.now += 3601
    host.apply([FakeRecord(b"new", b"x", 5, record_ms=int(wall.now * 1000))], 6)

    assert [host.tend(0, 3), host.tend(0, 3)] == [True, False]
    assert [key for key, _ in host.store.scan(b"0", b"z")] == [b"new"]


async def test_of_many_poison_records_ten_are_logged_and_all_are_counted(open_host: OpenHost, metrics: Metrics) -> None:
    host = open_host(**PLAIN)
    with capture_logs() as logs:
        host.apply([FakeRecord(None, b"x", offset) for offset in range(50)], 50)

    assert counted(metrics, "poison") == 50
    assert [log["event"] for log in logs] == ["record skipped"] * 10 + ["more records skipped"]
    assert logs[-1]["records"] == 40
