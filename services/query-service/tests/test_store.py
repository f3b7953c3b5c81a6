"""The rows of one partition on disk."""

from collections.abc import Callable
from threading import Thread

import pytest

from query_service.errors import StoreClosedError
from query_service.store import PartitionStore
from query_service.store_directory import Identity, StoreDirectory
from query_service.store_keys import DELETED, HEADER, HEADER_SIZE

IDENTITY = Identity("id", 0)


def value(sequence: int, offset: int, payload: bytes = b"row") -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, 0) + payload


def deletion(sequence: int, offset: int) -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, DELETED)


@pytest.fixture
def store(open_directory: Callable[..., StoreDirectory]) -> PartitionStore:
    return open_directory().open("s", IDENTITY)


def reopened(store: PartitionStore, open_directory: Callable[..., StoreDirectory]) -> PartitionStore:
    store.close()
    return open_directory().open("s", IDENTITY)


def test_rows_and_the_next_offset_are_written_together(
    store: PartitionStore, open_directory: Callable[..., StoreDirectory]
) -> None:
    store.write({b"a": value(1, 5), b"b": value(2, 6)}, 7, 0)
    again = reopened(store, open_directory)

    assert again.get_many([b"a", b"missing", b"b"]) == [value(1, 5), None, value(2, 6)]
    assert again.next_offset == 7


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


def test_what_was_purged_and_when_all_was_current_survive_a_restart(
    store: PartitionStore, open_directory: Callable[..., StoreDirectory]
) -> None:
    store.note_purged(41)
    store.note_purged(17)
    store.note_current(1_700_000_000_123)
    again = reopened(store, open_directory)

    assert again.purged_through == 41
    assert again.current_ms == 1_700_000_000_123


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
