"""Records of any topic become rows, or are skipped."""

import pytest

from query_service.errors import PoisonRecordError
from query_service.storage.plain_record import decode_plain
from query_service.storage.record import Record
from query_service.storage.store_keys import HEADER_SIZE, UNTIMED, header_of
from query_service.testing import FakeRecord


def refuse(record: Record, error: PoisonRecordError) -> None:
    raise error


def test_a_record_becomes_its_key_and_its_value_with_the_offset_as_sequence() -> None:
    keys, (value,) = decode_plain([FakeRecord(b"c-1", b'{"trip": 1}', 42, record_ms=1_700_000_000_123)], refuse)
    header = header_of(value)

    assert keys == [b"c-1"]
    assert (header.epoch, header.sequence, header.offset) == (0, 42, 42)
    assert (header.commit_seconds, header.commit_nanos, header.flags) == (1_700_000_000, 123_000_000, 0)
    assert value[HEADER_SIZE:] == b'{"trip": 1}'


def test_a_record_without_a_value_is_a_deletion() -> None:
    _, (value,) = decode_plain([FakeRecord(b"c-1", None, 7, record_ms=5)], refuse)

    assert header_of(value).deleted
    assert len(value) == HEADER_SIZE


def test_an_empty_value_is_a_value() -> None:
    _, (value,) = decode_plain([FakeRecord(b"c-1", b"", 7, record_ms=5)], refuse)

    assert not header_of(value).deleted


def test_a_record_without_a_time_says_so() -> None:
    _, (value,) = decode_plain([FakeRecord(b"c-1", b"x", 7)], refuse)

    assert header_of(value).flags == UNTIMED


def test_a_key_may_name_a_member_of_a_group() -> None:
    keys, values = decode_plain([FakeRecord(b"g\0s\0m", b"x", 1)], refuse)

    assert keys == [b"g\0s\0m"]
    assert len(values) == 1


@pytest.mark.parametrize("key", [None, b"", b"a\0b", b"\0s\0m", b"g\0\0m", b"g\0s\0", b"a\0b\0c\0d", b"\xff\xfe"])
def test_a_key_that_names_no_row_is_skipped_and_the_rest_is_kept(key: bytes | None) -> None:
    skipped: list[tuple[Record, str]] = []
    poison = FakeRecord(key, b"x", 1)
    keys, values = decode_plain(
        [poison, FakeRecord("größe".encode(), b"y", 2)], lambda record, error: skipped.append((record, str(error)))
    )

    assert skipped == [(poison, f"the key {key!r} is neither UTF-8 text nor `group NUL sort NUL member`")]
    assert keys == ["größe".encode()]
    assert len(values) == 1
