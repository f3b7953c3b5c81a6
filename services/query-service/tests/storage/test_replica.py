"""A partition that this instance holds."""

from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from query_service.errors import NotServedError, StoreFailedError
from query_service.metrics import Metrics
from query_service.reads.replica_reads import is_value
from query_service.storage.record import TOMBSTONE_HEADER, Headers
from query_service.storage.replica import Replica, unexpired, unexpired_rows
from query_service.storage.spread import Spread
from query_service.storage.store_keys import HEADER, HEADER_SIZE, MAX_MISPLACED, UNTIMED, header_of
from statecast.partitioning import PARTITIONERS, partition_of
from testkit.query_service import FakeRecord, ManualClock, OpenReplica, encoded_state, put, tombstone

PLAIN: dict[str, object] = {"format": "plain", "message": "json"}


def payload(replica: Replica, key: bytes) -> bytes | None:
    value = replica.read([key])[0]
    return None if value is None or header_of(value).deleted else value[HEADER_SIZE:]


def counted(metrics: Metrics, outcome: str) -> float:
    """Returns the number of records with this outcome, for all reasons."""
    registry: CollectorRegistry = metrics.registry
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    return sum(
        each.value
        for each in samples
        if each.name == "query_service_records_total" and each.labels["outcome"] == outcome
    )


async def test_it_applies_what_is_newer_and_counts_what_is_stale(open_replica: OpenReplica, metrics: Metrics) -> None:
    replica = open_replica()
    replica.apply([put("a", 1, 0, b"one"), put("a", 2, 1, b"two"), put("a", 1, 2, b"one")], 3)

    assert payload(replica, b"a") == b"two"
    assert replica.progress.applied_offset == 2
    assert (counted(metrics, "applied"), counted(metrics, "older")) == (2, 1)


async def test_the_position_of_a_key_is_the_record_that_was_applied(open_replica: OpenReplica) -> None:
    replica = open_replica()
    replica.apply([put("a", 5, 10)], 11)
    replica.apply([put("a", 5, 20), put("a", 4, 21)], 22)

    assert header_of(replica.read([b"a"])[0] or b"").offset == 10


async def test_a_poison_record_is_skipped_and_the_rest_is_applied(open_replica: OpenReplica, metrics: Metrics) -> None:
    replica = open_replica()
    replica.apply([put("a", 1, 0), FakeRecord(b"b", b"\xff\xff", 1), FakeRecord(None, b"", 2), put("c", 1, 3)], 4)

    assert (payload(replica, b"a"), payload(replica, b"c")) == (b"row", b"row")
    assert replica.progress.applied_offset == 3
    assert counted(metrics, "refused") == 2


async def test_a_batch_of_poison_alone_still_moves_on(open_replica: OpenReplica) -> None:
    replica = open_replica()
    replica.apply([FakeRecord(b"b", b"\xff\xff", 0)], 1)

    assert replica.store.next_offset == 1


async def test_a_replay_does_not_bring_a_deleted_row_back(open_replica: OpenReplica) -> None:
    replica = open_replica()
    log = [put("a", 1, 0), put("a", 2, 1), tombstone("a", 3, 2)]
    replica.apply(log, 3)
    replica.apply([put("a", 1, 3), put("a", 2, 4)], 5)

    assert payload(replica, b"a") is None


async def test_a_replay_shows_no_older_value_however_late_it_comes(
    open_replica: OpenReplica, wall: ManualClock
) -> None:
    replica = open_replica()
    log = [put("g\0001\0m", 1, 0, b"one"), tombstone("g\0001\0m", 2, 1), put("g\0002\0m", 2, 2, b"two")]
    replica.apply(log, 3)
    wall.now += 7 * 86_400
    replica.run_maintenance(int(wall.now * 1000), 0, 10)
    replica.apply([put("g\0001\0m", 1, 3, b"one")], 4)

    assert [key for key, _ in replica.scan(b"g", b"g\1", reverse=False)] == [b"g\0002\0m"]

    replica.apply([tombstone("g\0001\0m", 2, 4), put("g\0002\0m", 2, 5, b"two")], 6)
    replica.run_maintenance(int(wall.now * 1000), 2, 10)
    assert replica.read([b"g\0001\0m"]) == [None]


async def test_deletions_of_a_plain_topic_never_come_again_and_are_purged_by_age(
    open_replica: OpenReplica, wall: ManualClock
) -> None:
    replica = open_replica(**PLAIN)
    replica.apply([FakeRecord(b"a", None, 0)], 1)
    wall.now += 1
    replica.run_maintenance(int(wall.now * 1000), 0, 10)

    assert replica.read([b"a"]) == [None]


HEADERS: list[tuple[str, str | bytes | None]] = [(TOMBSTONE_HEADER, encoded_state(1, seconds=2**62))]


class UnreadableHeaders(FakeRecord):
    """A record with a header name that is not UTF-8, as the client gives it."""

    def headers(self) -> Headers:
        raise SystemError("returned a result with an exception set")


@pytest.mark.parametrize(
    "fields", [{"history": {"age": "1h"}}, {**PLAIN, "retain": "1h"}, {**PLAIN, "history": {"age": "1h"}}, {}]
)
@pytest.mark.parametrize(
    "hostile",
    [
        *(FakeRecord(b"a", encoded_state(2, seconds=seconds), 1) for seconds in (2**62, -(2**63), 253_402_300_800)),
        *(FakeRecord(b"a", encoded_state(sequence), 1) for sequence in (-1, 2**63 - 1)),
        *(FakeRecord(b"a", encoded_state(2, epoch=epoch), 1) for epoch in (-1, 2**63 - 1)),
        *(FakeRecord(b"a", None, 1, headers) for headers in ([], HEADERS)),
        *(FakeRecord(b"a", None, 1, [(TOMBSTONE_HEADER, value)]) for value in (None, "text", b"\xff\xff", b"")),
        *(FakeRecord(b"a", b"x", 1, record_ms=ms) for ms in (2**63 - 1, -(2**63), -1)),
        *(FakeRecord(key, b"", 1) for key in (None, b"", b"\0", b"\xff", b"a\0", b"\0\0\0", b"a\0\0a", b"x" * 70_000)),
        UnreadableHeaders(b"a", None, 1),
    ],
)
async def test_no_record_ends_the_reading_or_the_upkeep(
    open_replica: OpenReplica, wall: ManualClock, fields: dict[str, object], hostile: FakeRecord
) -> None:
    replica = open_replica(**fields)
    now_ms = int(wall.now * 1000)
    for record in (FakeRecord(b"a", encoded_state(1), 0, record_ms=now_ms), hostile):
        replica.apply([record], record.offset() + 1)
    replica.apply([FakeRecord(b"z", encoded_state(3), 2, record_ms=now_ms)], 3)
    wall.now += 1800
    replica.run_maintenance(int(wall.now * 1000), 3, 100)

    assert payload(replica, b"z") is not None
    assert replica.progress.applied_offset == 2


@pytest.mark.parametrize(
    ("records", "row"),
    [
        ([tombstone("a", 3, 0), put("a", 4, 1, b"again")], b"again"),
        ([put("a", 4, 0), tombstone("a", 3, 1)], b"row"),
        ([put("a", 900, 0, b"old"), put("a", 1, 1, b"new", epoch=2)], b"new"),
    ],
    ids=["made-again", "deletion-older-than-the-row", "lower-sequence-of-a-higher-epoch"],
)
async def test_the_newest_record_by_epoch_and_sequence_counts(
    open_replica: OpenReplica, records: list[FakeRecord], row: bytes
) -> None:
    replica = open_replica()
    replica.apply(records, 2)

    assert payload(replica, b"a") == row


async def test_it_says_how_fresh_it_is(open_replica: OpenReplica, clock: ManualClock) -> None:
    replica = open_replica(partition=3)
    replica.apply([put("a", 1, 0)], 1)
    replica.note_end_offset(5, clock.now)
    clock.now += 0.5
    freshness = replica.freshness("query-1")

    assert (freshness.partition, freshness.lag_records, freshness.lag_ms) == (3, 4, 501)
    assert (freshness.epoch, freshness.applied_offset) == (77, 0)
    assert freshness.answered_by == "query-1"


async def test_the_end_of_the_log_counts_as_applied_although_it_has_no_record(open_replica: OpenReplica) -> None:
    replica = open_replica()
    replica.note_end_offset(9, 0)
    replica.advance_to(9)

    assert replica.progress.lag_records == 0
    assert replica.store.next_offset == 9


async def test_maintenance_purges_old_deletion_markers_and_notes_the_time(
    open_replica: OpenReplica, wall: ManualClock
) -> None:
    replica = open_replica()
    replica.apply([tombstone("a", 1, 0)], 1)
    wall.now += 100
    replica.run_maintenance(int(wall.now * 1000) - 50_000, 1, 10)

    assert replica.read([b"a"]) == [None]
    assert replica.store.current_ms == int(wall.now * 1000) - replica.progress.lag_ms


async def test_reading_a_store_that_has_moved_away_sends_the_caller_to_another_replica(
    open_replica: OpenReplica,
) -> None:
    replica = open_replica()
    replica.store.close()

    with pytest.raises(NotServedError):
        replica.read([b"a"])
    with pytest.raises(NotServedError):
        list(replica.scan(b"a", b"b", reverse=False))


async def test_a_plain_store_keeps_the_newest_value_of_each_key(open_replica: OpenReplica, metrics: Metrics) -> None:
    replica = open_replica(**PLAIN)
    replica.apply([FakeRecord(b"a", b"one", 0), FakeRecord(b"a", b"two", 1), FakeRecord(b"b", b"x", 2)], 3)
    replica.apply([FakeRecord(b"b", None, 3), FakeRecord(None, b"y", 4)], 5)

    assert (payload(replica, b"a"), payload(replica, b"b")) == (b"two", None)
    assert (counted(metrics, "applied"), counted(metrics, "refused")) == (4, 1)


async def test_a_row_is_absent_as_soon_as_its_record_is_too_old(open_replica: OpenReplica, wall: ManualClock) -> None:
    replica = open_replica(**PLAIN, retain="1h")
    now_ms = int(wall.now * 1000)
    replica.apply([FakeRecord(b"a", b"old", 0, record_ms=now_ms), FakeRecord(b"b", b"new", 1, record_ms=now_ms + 1)], 2)
    wall.now += 3600
    assert payload(replica, b"a") == b"old"
    wall.now += 0.001
    hidden = [header_of(value).deleted for _, value in replica.scan(b"a", b"z", reverse=False)]

    assert (payload(replica, b"a"), payload(replica, b"b")) == (None, b"new")
    assert hidden == [True, False]


async def test_maintenance_purges_what_is_too_old_a_few_at_a_time(open_replica: OpenReplica, wall: ManualClock) -> None:
    replica = open_replica(**PLAIN, retain="1h")
    now_ms = int(wall.now * 1000)
    replica.apply([FakeRecord(b"%d" % number, b"x", number, record_ms=now_ms) for number in range(5)], 5)
    wall.now += 3601
    replica.apply([FakeRecord(b"new", b"x", 5, record_ms=int(wall.now * 1000))], 6)

    assert [replica.run_maintenance(0, 0, 3), replica.run_maintenance(0, 0, 3)] == [True, False]
    assert [key for key, _ in replica.store.scan(b"0", b"z")] == [b"new"]


async def test_of_many_refused_records_the_first_is_logged_and_all_are_counted(
    open_replica: OpenReplica, metrics: Metrics
) -> None:
    replica = open_replica(**PLAIN)
    with capture_logs() as logs:
        replica.apply([FakeRecord(None, b"x", offset) for offset in range(50)], 50)
        replica.apply([FakeRecord(b"\xff", b"x", 50)], 51)

    assert counted(metrics, "refused") == 51
    assert [(log["offset"], log["reason"][:15]) for log in logs] == [(0, "there is no key")]


async def test_records_whose_write_fails_are_not_counted_until_it_succeeds(
    open_replica: OpenReplica, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = open_replica(**PLAIN)
    records = [FakeRecord(None, b"x", 0), FakeRecord(b"a", b"x", 1)]
    with monkeypatch.context() as patch:
        patch.setattr(replica.store, "write", Mock(side_effect=StoreFailedError("full")))
        with pytest.raises(StoreFailedError):
            replica.apply(records, 2)
    replica.apply(records, 2)

    assert (counted(metrics, "applied"), counted(metrics, "refused")) == (1, 1)


def test_keys_of_each_partitioner_are_where_the_contract_puts_them() -> None:
    keys = [f"c-{number}ü".encode() for number in range(500)]
    for name, hash_group in PARTITIONERS.items():
        for partition in range(9):
            here = [key for key in keys if partition_of(key.decode(), 9, hash_group) == partition]
            of_groups = [key + b"\0sort\0member" for key in here]

            assert Spread(name, 9, partition).misplaced([*here, *of_groups]) == []
            assert len(Spread(name, 9, partition).misplaced(keys)) == len(keys) - len(here)


PLACED = [f"c-{number}" for number in range(2000) if partition_of(f"c-{number}", 4) == 0]
ELSEWHERE = [f"c-{number}" for number in range(2000) if partition_of(f"c-{number}", 4) != 0]


async def test_a_misplaced_key_is_noted_until_it_is_deleted(open_replica: OpenReplica, metrics: Metrics) -> None:
    replica, key = open_replica(**PLAIN), ELSEWHERE[0].encode()
    replica.apply([FakeRecord(PLACED[0].encode(), b"x", 0), FakeRecord(key, b"x", 1)], 2)

    assert replica.store.misplaced == {key}

    replica.apply([FakeRecord(key, b"y", 2)], 3)
    replica.apply([FakeRecord(key, None, 3)], 4)

    assert replica.store.misplaced == set()
    counted_records = metrics.registry.get_sample_value(
        "query_service_misplaced_records_total", {"store": replica.definition.name}
    )
    assert counted_records == 3


async def test_a_keyed_topic_is_checked_by_the_group_of_its_keys(open_replica: OpenReplica) -> None:
    replica = open_replica()
    replica.apply([put(f"{PLACED[0]}\0s\0m", 1, 0), put(f"{ELSEWHERE[0]}\0s\0m", 1, 1)], 2)

    assert replica.store.misplaced == {f"{ELSEWHERE[0]}\0s\0m".encode()}


async def test_so_many_misplaced_keys_are_noted_and_no_more(open_replica: OpenReplica) -> None:
    replica = open_replica(**PLAIN)
    replica.apply([FakeRecord(key.encode(), b"x", offset) for offset, key in enumerate(ELSEWHERE)], len(ELSEWHERE))

    assert len(replica.store.misplaced) == MAX_MISPLACED


async def test_keys_on_disk_are_checked_when_the_topic_has_more_partitions(open_replica: OpenReplica) -> None:
    replica = open_replica(**PLAIN)
    rows = [FakeRecord(key.encode(), b"x", offset) for offset, key in enumerate(PLACED[:40])]
    replica.apply(rows, len(rows))
    replica.store.check_spread(Spread("murmur2", 8, 0))
    moved = {key.encode() for key in PLACED[:40] if partition_of(key, 8) != 0}

    assert replica.store.misplaced == moved
    assert 0 < len(moved) < 40

    replica.store.check_spread(Spread("murmur2", 4, 0))
    assert replica.store.misplaced == set()


OLD = HEADER.pack(0, 1, 1, 5, 999_000_000, 0) + b"old"
YOUNG = HEADER.pack(0, 2, 2, 6, 0, 0) + b"young"
TIMELESS = HEADER.pack(0, 3, 3, 0, 0, UNTIMED) + b"timeless"


def test_a_row_is_hidden_when_its_record_was_committed_before_the_time() -> None:
    assert unexpired(OLD, 5999) == OLD
    assert unexpired(OLD, 6000) is None
    assert unexpired(YOUNG, 6000) == YOUNG


def test_a_row_without_a_time_is_never_hidden() -> None:
    assert unexpired(TIMELESS, 2**50) == TIMELESS
    assert unexpired(None, 0) is None


def test_a_hidden_row_of_a_scan_is_counted_and_is_no_value() -> None:
    rows = list(unexpired_rows(iter([(b"a", OLD), (b"b", YOUNG)]), 6000))

    assert [(key, is_value(value)) for key, value in rows] == [(b"a", False), (b"b", True)]
