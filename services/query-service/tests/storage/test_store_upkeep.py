"""What a store keeps beside the newest rows, and for how long, on disk and in memory."""

from collections.abc import Callable

import pytest

from query_service.storage.store import PartitionStore
from query_service.storage.store_keys import DELETED, HEADER, UNTIMED, offset_of

OpenStore = Callable[..., PartitionStore]


def value(sequence: int, offset: int, seconds: int = 0) -> bytes:
    return HEADER.pack(1, sequence, offset, seconds, 0, 0) + b"row"


def deletion(sequence: int, offset: int) -> bytes:
    return HEADER.pack(1, sequence, offset, 0, 0, DELETED)


@pytest.fixture
def timed_store(open_store: OpenStore) -> PartitionStore:
    return open_store(format="plain", retain="1h")


def test_a_row_is_forgotten_when_its_record_is_too_old_and_another_has_come(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5), b"b": value(2, 2, seconds=9)}, 3, 0)

    assert timed_store.forget_expired(before_ms=5001, most=10) == 1
    assert (timed_store.get(b"a"), timed_store.get(b"b")) == (None, value(2, 2, seconds=9))
    assert timed_store.purged_through == 2


def test_the_last_record_of_the_log_stays_until_a_reader_can_be_told(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5)}, 2, 0)
    timed_store.forget_expired(before_ms=6000, most=10)
    assert timed_store.get(b"a") is not None
    timed_store.write({b"b": value(2, 2, seconds=9)}, 3, 0)
    timed_store.forget_expired(before_ms=6000, most=10)

    assert timed_store.get(b"a") is None


def test_a_newer_value_outlives_its_older_record(timed_store: PartitionStore) -> None:
    timed_store.write({b"a": value(1, 1, seconds=5)}, 2, 0)
    timed_store.write({b"a": value(2, 2, seconds=9)}, 3, 0)
    timed_store.forget_expired(before_ms=6000, most=10)

    assert timed_store.get(b"a") == value(2, 2, seconds=9)


def test_a_row_without_a_time_is_never_too_old(timed_store: PartitionStore) -> None:
    untimed = HEADER.pack(1, 1, 1, 0, 0, UNTIMED) + b"row"
    timed_store.write({b"a": untimed}, 3, 0)

    assert timed_store.forget_expired(before_ms=2**40, most=10) == 0
    assert timed_store.get(b"a") == untimed


def older(store: PartitionStore, key: bytes) -> list[bytes]:
    """The versions before the newest, the newest of them first."""
    newest = store.get(key)
    assert newest is not None
    return list(store.older_versions(key, offset_of(newest)))


def write_versions(store: PartitionStore, key: bytes, values: list[bytes]) -> None:
    """Writes a version at a time, as the host does."""
    for value_ in values:
        held = store.get(key)
        replaced = [] if held is None else [(key, held, value_)]
        store.write({key: value_}, offset_of(value_) + 1, arrived_ms=1000, replaced=replaced)


def test_a_store_keeps_as_many_older_versions_as_it_is_told(open_store: OpenStore) -> None:
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

    assert store.forget_versions(before_ms=2001, most=10) == 1
    assert older(store, b"a") == [values[1]]
    assert store.forget_versions(before_ms=9000, most=10) == 1
    assert older(store, b"a") == []
    assert store.get(b"a") == values[2]


def test_the_versions_of_a_deleted_row_go_with_its_marker(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 5})
    write_versions(store, b"a", [value(1, 1), deletion(2, 2)])
    assert older(store, b"a") == [value(1, 1)]
    store.forget_deletions(before_ms=2000, most=10)

    assert store.get(b"a") is None
    assert list(store.older_versions(b"a", 100)) == []


def test_a_row_that_came_back_keeps_the_versions_from_before(open_store: OpenStore) -> None:
    store = open_store(history={"versions": 5})
    write_versions(store, b"a", [value(1, 1), deletion(2, 2), value(3, 3)])
    store.forget_deletions(before_ms=2000, most=10)

    assert older(store, b"a") == [deletion(2, 2), value(1, 1)]


def test_versions_go_when_their_records_are_too_old(open_store: OpenStore) -> None:
    store = open_store(format="plain", retain="1h", history={"versions": 5})
    values = [value(number, number, seconds=number) for number in range(1, 4)]
    write_versions(store, b"a", values)
    store.forget_expired(before_ms=2001, most=10)

    assert older(store, b"a") == []
    assert store.get(b"a") == values[2]


def test_a_store_without_history_keeps_no_versions(open_store: OpenStore) -> None:
    store = open_store()
    write_versions(store, b"a", [value(1, 1), value(2, 2)])

    assert older(store, b"a") == []
