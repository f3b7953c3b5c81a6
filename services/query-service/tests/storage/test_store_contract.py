"""One suite for the store of a partition, on disk and in memory."""

from collections.abc import Callable
from threading import Thread

import pytest

from query_service.errors import StoreClosedError
from query_service.storage.store import PartitionStore
from query_service.storage.store_directory import Identity
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE

IDENTITY = Identity("id", 0)

OpenStore = Callable[..., PartitionStore]


def value(sequence: int, offset: int, payload: bytes = b"row") -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, 0) + payload


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


def test_what_the_store_knows_about_itself_is_in_no_range_of_rows(store: PartitionStore) -> None:
    store.write({b"\x01": deletion(1, 1)}, 2, 10)

    assert [key for key, _ in store.scan(b"\x01", b"\xff")] == [b"\x01"]


def test_a_deletion_is_remembered_and_then_forgotten(store: PartitionStore) -> None:
    store.write({b"a": deletion(3, 9)}, 10, arrived_ms=1000)

    assert store.forget_deletions(before_ms=1000, most=10) == 0
    assert store.get(b"a") == deletion(3, 9)

    assert store.forget_deletions(before_ms=1001, most=10) == 1
    assert store.get(b"a") is None
    assert store.purged_through == 9
    assert store.forget_deletions(before_ms=1001, most=10) == 0


def test_a_row_that_came_back_is_not_forgotten(store: PartitionStore) -> None:
    store.write({b"a": deletion(3, 9)}, 10, arrived_ms=1000)
    store.write({b"a": value(4, 10)}, 11, arrived_ms=1500)
    store.forget_deletions(before_ms=5000, most=10)

    assert store.get(b"a") == value(4, 10)
    assert store.purged_through == -1


def test_deletions_are_forgotten_a_few_at_a_time(store: PartitionStore) -> None:
    store.write({b"%d" % number: deletion(1, number) for number in range(5)}, 5, arrived_ms=1000)

    assert [store.forget_deletions(2000, most=2) for _ in range(4)] == [2, 2, 1, 0]


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
    before[b"0600"] = deletion(2, 2000)
    rows = store.scan(b"0", b"9", reverse=reverse)
    seen = [next(rows)]
    store.write({b"%04d" % number: value(3, number, b"new") for number in range(1, 2000, 3)}, 2002, 0)
    seen += [next(rows) for _ in range(300)]
    store.forget_deletions(before_ms=2000, most=10)
    store.write({b"%04d" % number: value(4, number, b"newer") for number in range(0, 2000, 5)}, 2003, 0)
    seen += rows

    assert seen == sorted(before.items(), reverse=reverse)


def test_what_is_written_while_restoring_is_there_at_once_and_after_it(store: PartitionStore) -> None:
    store.restoring = True
    store.write({b"a": value(1, 1)}, 2, 0)
    assert store.get(b"a") == value(1, 1)
    store.settle()
    store.write({b"b": value(1, 2)}, 3, 0)

    assert store.get_many([b"a", b"b"]) == [value(1, 1), value(1, 2)]
    assert not store.restoring
