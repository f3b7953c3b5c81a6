"""One suite for the store of a partition, on disk and in memory."""

from threading import Thread

import pytest

from query_service.errors import StoreClosedError
from query_service.storage.store import PartitionStore
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE, UNTIMED, offset_of
from testkit.query_service import OpenStore


def value(sequence: int, offset: int, payload: bytes = b"row", seconds: int = 0) -> bytes:
    return HEADER.pack(1, sequence, offset, seconds, 0, 0) + payload


def deletion(sequence: int, offset: int) -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, DELETED)


@pytest.fixture
def store(open_store: OpenStore) -> PartitionStore:
    return open_store()


def test_rows_and_the_next_offset_are_written_together(store: PartitionStore) -> None:
    store.write({b"a": value(1, 5), b"b": value(2, 6)}, 7, 0)

    assert store.get_many([b"a", b"missing", b"b"]) == [value(1, 5), None, value(2, 6)]
    assert store.next_offset == 7


def test_a_scan_yields_a_range_in_order_and_in_reverse(store: PartitionStore) -> None:
    store.write({key: value(1, 1, key) for key in (b"a", b"b", b"c", b"d")}, 2, 0)

    assert [key for key, _ in store.scan(b"b", b"d")] == [b"b", b"c"]
    assert [key for key, _ in store.scan(b"b", b"d", reverse=True)] == [b"c", b"b"]


def test_a_scan_shows_one_moment(store: PartitionStore) -> None:
    store.write({b"a": value(1, 1), b"c": value(1, 2)}, 3, 0)
    rows = store.scan(b"a", b"z")
    first = next(rows)
    store.write({b"b": value(1, 3), b"c": value(2, 4, b"changed")}, 5, 0)

    assert [first, *rows] == [(b"a", value(1, 1)), (b"c", value(1, 2))]


def test_the_notes_of_a_store_are_in_no_range_of_rows(store: PartitionStore) -> None:
    store.write({b"\x01": value(1, 1), b"\x02": deletion(1, 2)}, 3, 10)

    assert [key for key, _ in store.scan(b"\x01", b"\xff")] == [b"\x01"]
    assert list(store.deletions(b"\x01", b"\xff")) == [(b"\x02", deletion(1, 2))]


def test_a_deletion_marker_is_kept_and_then_purged(store: PartitionStore) -> None:
    store.write({b"a": deletion(3, 9)}, 10, arrived_ms=1000)

    assert store.purge_deletions(before_ms=1000, limit=10) == 0
    assert store.get(b"a") == deletion(3, 9)

    assert store.purge_deletions(before_ms=1001, limit=10) == 1
    assert store.get(b"a") is None
    assert store.purged_offset == 9
    assert store.purge_deletions(before_ms=1001, limit=10) == 0


def test_a_deletion_that_may_come_again_is_kept_however_old_it_is(store: PartitionStore) -> None:
    store.write({b"a": deletion(3, 8)}, 9, arrived_ms=1000)
    store.write({b"b": deletion(3, 9)}, 10, arrived_ms=1001)

    assert store.purge_deletions(2**62, limit=10, before_offset=8) == 0
    assert store.purge_deletions(2**62, limit=10, before_offset=9) == 1
    assert store.get_many([b"a", b"b"]) == [None, deletion(3, 9)]
    assert store.purged_offset == 8


@pytest.mark.parametrize("later", [value(4, 10), deletion(5, 11)], ids=["row", "deletion"])
def test_the_marker_of_a_deletion_that_was_replaced_purges_nothing(store: PartitionStore, later: bytes) -> None:
    store.write({b"a": deletion(3, 9)}, 10, arrived_ms=1000)
    store.write({b"a": value(4, 10)}, 11, arrived_ms=1001)
    store.write({b"a": later}, 12, arrived_ms=1002)
    store.purge_deletions(before_ms=1002, limit=10)

    assert store.get(b"a") == later
    assert store.purged_offset == -1


def test_deletion_markers_are_purged_a_few_at_a_time(store: PartitionStore) -> None:
    store.write({b"%d" % number: deletion(1, number) for number in range(5)}, 5, arrived_ms=1000)

    assert [store.purge_deletions(2000, limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_closed_store_says_so(store: PartitionStore) -> None:
    store.close()

    with pytest.raises(StoreClosedError, match="ask again"):
        store.get(b"a")
    with pytest.raises(StoreClosedError, match="ask again"):
        list(store.scan(b"a", b"b"))
    with pytest.raises(StoreClosedError, match="ask again"):
        store.write({}, 1, 0)


def test_an_empty_payload_is_a_row(store: PartitionStore) -> None:
    store.write({b"a": value(1, 1, b"")}, 2, 0)

    assert len(store.get(b"a") or b"") == HEADER_SIZE


def test_a_store_can_be_closed_while_others_read_it(store: PartitionStore) -> None:
    store.write({b"%d" % number: value(1, number) for number in range(1000)}, 1000, 0)
    ended: list[type[Exception]] = []

    def read() -> None:
        try:
            while True:
                store.get_many([b"%d" % number for number in range(1000)])
        except StoreClosedError as error:
            ended.append(type(error))

    readers = [Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    store.close()
    for reader in readers:
        reader.join(30)

    assert ended == [StoreClosedError] * 3


def test_a_scan_that_nobody_reads_on_does_not_hold_up_writes(store: PartitionStore) -> None:
    store.write({b"%03d" % number: value(1, 1) for number in range(600)}, 1, 0)
    rows = store.scan(b"0", b"9")
    next(rows)
    del rows
    store.write({b"500": value(2, 2)}, 2, 0)

    assert store.get(b"500") == value(2, 2)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_long_scan_shows_one_moment_while_rows_come_change_and_go(store: PartitionStore, reverse: bool) -> None:
    before = {b"%04d" % number: value(1, number) for number in range(0, 2000, 2)}
    store.write(before, 2000, arrived_ms=1000)
    store.write({b"0600": deletion(2, 2000)}, 2001, arrived_ms=1000)
    del before[b"0600"]
    rows = store.scan(b"0", b"9", reverse=reverse)
    scanned = [next(rows)]
    store.write({b"%04d" % number: value(3, number, b"new") for number in range(1, 2000, 3)}, 2002, 0)
    scanned += [next(rows) for _ in range(300)]
    store.purge_deletions(before_ms=2000, limit=10)
    store.write({b"%04d" % number: value(4, number, b"newer") for number in range(0, 2000, 5)}, 2003, 0)
    scanned += rows

    assert scanned == sorted(before.items(), reverse=reverse)


def test_what_is_written_while_restoring_is_there_at_once_and_after_it(store: PartitionStore) -> None:
    store.begin_restore(1)
    store.write({b"a": value(1, 1)}, 2, 0)
    assert store.get(b"a") == value(1, 1)
    store.finish_restore()
    store.write({b"b": value(1, 2)}, 3, 0)

    assert store.get_many([b"a", b"b"]) == [value(1, 1), value(1, 2)]
    assert not store.restoring


@pytest.mark.parametrize("records", [1, 1000])
def test_a_restore_of_an_empty_store_finds_every_row_that_is_replaced(store: PartitionStore, records: int) -> None:
    store.begin_restore(records)
    keys = [b"%d" % number for number in range(1000)]
    rows = {key: value(1, offset) for offset, key in enumerate(keys[:500])}

    assert store.replaced_by([*rows]) == [None] * 500
    store.write(rows, 500, 0)
    assert store.replaced_by(keys) == [*rows.values(), *[None] * 500]
    store.finish_restore()
    assert store.replaced_by(keys) == [*rows.values(), *[None] * 500]


def test_a_restore_that_goes_on_finds_the_rows_of_before(store: PartitionStore) -> None:
    store.write({b"a": value(1, 1)}, 2, 0)
    store.begin_restore(1000)

    assert store.replaced_by([b"b", b"a"]) == [None, value(1, 1)]


@pytest.fixture
def timed_store(open_store: OpenStore) -> PartitionStore:
    return open_store(format="plain", retain="1h")


def test_a_row_is_purged_when_its_record_is_too_old_and_another_has_come(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5), b"b": value(2, 2, seconds=9)}, 3, 0)

    assert timed_store.purge_expired(before_ms=5001, limit=10) == 1
    assert (timed_store.get(b"a"), timed_store.get(b"b")) == (None, value(2, 2, seconds=9))
    assert timed_store.purged_offset == 2


def test_the_last_record_of_the_log_stays_until_readers_can_learn_of_it(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5)}, 2, 0)
    timed_store.purge_expired(before_ms=6000, limit=10)
    assert timed_store.get(b"a") is not None
    timed_store.write({b"b": value(2, 2, seconds=9)}, 3, 0)
    timed_store.purge_expired(before_ms=6000, limit=10)

    assert timed_store.get(b"a") is None


def test_a_newer_value_outlives_its_older_record(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5)}, 2, 0)
    timed_store.write({b"a": value(2, 2, seconds=9)}, 3, 0)
    timed_store.purge_expired(before_ms=6000, limit=10)

    assert timed_store.get(b"a") == value(2, 2, seconds=9)


def test_a_row_without_a_time_is_never_too_old(timed_store: PartitionStore) -> None:
    untimed = HEADER.pack(1, 1, 1, 0, 0, UNTIMED) + b"row"
    timed_store.write({b"a": untimed}, 3, 0)

    assert timed_store.purge_expired(before_ms=2**40, limit=10) == 0
    assert timed_store.get(b"a") == untimed


def older(store: PartitionStore, key: bytes) -> list[bytes]:
    """Returns the versions before the newest, the newest of them first."""
    newest = store.get(key)
    assert newest is not None
    return list(store.older_versions(key, offset_of(newest)))


def write_versions(store: PartitionStore, key: bytes, values: list[bytes]) -> None:
    """Writes a version at a time, as a replica does."""
    for value_ in values:
        held = store.get(key)
        replaced = [] if held is None else [(key, held, value_)]
        store.write({key: value_}, offset_of(value_) + 1, arrived_ms=1000, replaced=replaced)


def test_a_store_keeps_as_many_older_versions_as_its_definition_says(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 2})
    values = [value(number, number) for number in range(1, 6)]
    write_versions(store, b"a", values)
    write_versions(store, b"a\0s\0m", [value(1, 6), value(2, 7)])

    assert older(store, b"a") == [values[3], values[2]]
    assert older(store, b"a\0s\0m") == [value(1, 6)]


def test_versions_that_were_replaced_within_one_batch_are_kept_alike(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 2})
    one, two, three, four = (value(number, number) for number in range(1, 5))
    store.write({b"a": four}, 5, 0, [(b"a", one, two), (b"a", two, three), (b"a", three, four)])

    assert older(store, b"a") == [three, two]


def test_versions_are_kept_for_a_time_after_they_were_replaced(open_store: OpenStore) -> None:
    store = open_store(history={"age": "1h"})
    values = [value(number, number, seconds=number) for number in range(1, 4)]
    write_versions(store, b"a", values)

    assert store.purge_versions(before_ms=2001, limit=10) == 1
    assert older(store, b"a") == [values[1]]
    assert store.purge_versions(before_ms=9000, limit=10) == 1
    assert older(store, b"a") == []
    assert store.get(b"a") == values[2]


def test_the_versions_of_a_deleted_row_go_with_its_marker(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 5})
    write_versions(store, b"a", [value(1, 1), deletion(2, 2)])
    assert older(store, b"a") == [value(1, 1)]
    store.purge_deletions(before_ms=2000, limit=10)

    assert store.get(b"a") is None
    assert list(store.older_versions(b"a", 100)) == []


def test_a_row_that_came_back_keeps_the_versions_from_before(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 5})
    write_versions(store, b"a", [value(1, 1), deletion(2, 2), value(3, 3)])
    store.purge_deletions(before_ms=2000, limit=10)

    assert older(store, b"a") == [deletion(2, 2), value(1, 1)]


def test_versions_go_when_their_records_are_too_old(open_store: OpenStore) -> None:
    store = open_store(format="plain", retain="1h", history={"versions": 5})
    values = [value(number, number, seconds=number) for number in range(1, 4)]
    write_versions(store, b"a", values)
    store.purge_expired(before_ms=2001, limit=10)

    assert older(store, b"a") == []
    assert store.get(b"a") == values[2]


def test_a_store_without_history_keeps_no_versions(open_store: OpenStore) -> None:
    store = open_store()
    write_versions(store, b"a", [value(1, 1), value(2, 2)])

    assert older(store, b"a") == []
