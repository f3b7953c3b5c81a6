"""Records become rows, or are refused."""

import pytest

from query_service.errors import PoisonRecordError
from query_service.storage.record import row_key_of, stored_value_of
from query_service.storage.store_keys import HEADER_SIZE, UNTIMED, header_of
from query_service.testing import FakeRecord, encoded_state, put, tombstone


def test_a_record_becomes_a_header_and_its_payload() -> None:
    value = stored_value_of(put("order-1", 7, 42, b"row", epoch=3))
    header = header_of(value)

    assert (header.epoch, header.sequence, header.offset) == (3, 7, 42)
    assert header.commit_seconds == 1_700_000_000
    assert not header.deleted
    assert value[HEADER_SIZE:] == b"row"


def test_a_tombstone_becomes_a_header_alone() -> None:
    value = stored_value_of(tombstone("order-1", 7, 42))

    assert header_of(value).deleted
    assert len(value) == HEADER_SIZE


def test_a_record_without_a_commit_time_says_so() -> None:
    value = stored_value_of(FakeRecord(b"k", encoded_state(1, seconds=0)))

    assert header_of(value).flags == UNTIMED


@pytest.mark.parametrize("key", [None, b"", b"\0a\0b", b"a\0b", b"a\0b\0", b"a\0b\0c\0d", b"\xff\xfe"])
def test_a_key_that_names_no_row_is_poison(key: bytes | None) -> None:
    with pytest.raises(PoisonRecordError, match="the key"):
        row_key_of(FakeRecord(key, encoded_state(1)))


@pytest.mark.parametrize("key", [b"a", b"a\0b\0c", "größe".encode()])
def test_a_key_that_names_a_row_is_taken_as_it_is(key: bytes) -> None:
    assert row_key_of(FakeRecord(key, encoded_state(1))) == key


def test_a_value_that_is_no_state_record_is_poison() -> None:
    with pytest.raises(PoisonRecordError, match="not a statecast"):
        stored_value_of(FakeRecord(b"k", b"\xff\xff\xff"))


def test_a_negative_sequence_is_poison() -> None:
    with pytest.raises(PoisonRecordError, match="out of range"):
        stored_value_of(FakeRecord(b"k", encoded_state(-1)))


def test_a_tombstone_without_its_header_is_poison() -> None:
    with pytest.raises(PoisonRecordError, match="statecast-state-record"):
        stored_value_of(FakeRecord(b"k", None))
