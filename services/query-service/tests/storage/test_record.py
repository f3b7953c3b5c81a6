"""Records become rows or are skipped, and only newer ones change a store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_service.errors import PoisonRecordError
from query_service.storage.record import (
    TOMBSTONE_HEADER,
    Record,
    decode_plain,
    decode_states,
    newest_rows,
)
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE, UNTIMED, header_of
from statecast.state.v1.state_pb2 import StateRecord
from testkit.query_service import FakeRecord, encoded_state, put, tombstone


def test_a_record_becomes_a_header_and_its_payload() -> None:
    value = stored(put("order-1", 7, 42, b"row", epoch=3))
    header = header_of(value)

    assert (header.epoch, header.sequence, header.offset) == (3, 7, 42)
    assert header.commit_seconds == 1_700_000_000
    assert not header.deleted
    assert value[HEADER_SIZE:] == b"row"


def test_a_tombstone_becomes_a_header_alone() -> None:
    value = stored(tombstone("order-1", 7, 42))

    assert header_of(value).deleted
    assert len(value) == HEADER_SIZE


def test_a_record_without_a_commit_time_says_so() -> None:
    value = stored(FakeRecord(b"k", encoded_state(1, seconds=0)))

    assert header_of(value).flags == UNTIMED


NO_ROWS = [None, b"", b"\0a\0b", b"a\0b", b"a\0b\0", b"a\0\0c", b"\0s\0m", b"a\0b\0c\0d", b"\xff\xfe"]
"""Keys that name no row."""


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        *((FakeRecord(key, encoded_state(1)), "key") for key in NO_ROWS),
        (FakeRecord(b"k", b"\xff\xff\xff"), "not a statecast"),
        (FakeRecord(b"k", encoded_state(-1)), "out of range"),
        (FakeRecord(b"k", None), "statecast-state-record"),
    ],
)
def test_a_record_that_says_no_row_is_poison(record: FakeRecord, reason: str) -> None:
    with pytest.raises(PoisonRecordError, match=reason):
        stored(record)


@pytest.mark.parametrize("key", [b"a", b"a\0b\0c", "größe".encode()])
def test_a_key_that_names_a_row_is_taken_as_it_is(key: bytes) -> None:
    assert decode_states([FakeRecord(key, encoded_state(1))], refuse, known)[0] == [key]


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [(-62_135_596_801, 0), (253_402_300_800, 0), (0, -1), (0, 10**9), (2**63 - 1, 0), (-(2**63), 0), (1, 10**9)],
)
@pytest.mark.parametrize("key", [b"k", "größe".encode()])
def test_a_row_with_a_commit_time_that_no_calendar_has_is_kept_without_it(key: bytes, seconds: int, nanos: int) -> None:
    state, noted = StateRecord(epoch=1, sequence=1, payload=b"row"), list[Record]()
    state.source.commit_time.seconds, state.source.commit_time.nanos = seconds, nanos
    row = FakeRecord(key, state.SerializeToString())
    deletion = FakeRecord(key, None, 1, [(TOMBSTONE_HEADER, state.SerializeToString())])
    _, values = decode_states([row, deletion], refuse, noted.append)

    assert noted == [row, deletion]
    assert [header_of(value)[3:] for value in values] == [(0, 0, UNTIMED), (0, 0, UNTIMED | DELETED)]
    assert values[0][HEADER_SIZE:] == b"row"


@pytest.mark.parametrize("ms", [1_756_000_000_000_000, 2**63 - 1, -(2**63), -1, 253_402_300_800_000])
def test_a_plain_row_of_a_clock_that_counts_otherwise_is_kept_without_its_time(ms: int) -> None:
    noted: list[Record] = []
    record = FakeRecord(b"c-1", b"x", 7, record_ms=ms)
    _, (value,) = decode_plain([record], refuse, noted.append)

    assert noted == [record]
    assert header_of(value)[3:] == (0, 0, UNTIMED)
    assert value[HEADER_SIZE:] == b"x"


def stored(record: FakeRecord) -> bytes:
    _, (value,) = decode_states([record], refuse, known)
    return value


def refuse(record: Record, error: PoisonRecordError) -> None:
    raise error


def known(record: Record) -> None:
    raise AssertionError(f"the time of {record.key()!r} is known")


def test_a_record_becomes_its_key_and_its_value_with_the_offset_as_sequence() -> None:
    keys, (value,) = decode_plain([FakeRecord(b"c-1", b'{"trip": 1}', 42, record_ms=1_700_000_000_123)], refuse, known)
    header = header_of(value)

    assert keys == [b"c-1"]
    assert (header.epoch, header.sequence, header.offset) == (0, 42, 42)
    assert (header.commit_seconds, header.commit_nanos, header.flags) == (1_700_000_000, 123_000_000, 0)
    assert value[HEADER_SIZE:] == b'{"trip": 1}'


@pytest.mark.parametrize(
    ("record", "flags"),
    [
        (FakeRecord(b"c-1", None, 7, record_ms=5), DELETED),
        (FakeRecord(b"c-1", b"", 7, record_ms=5), 0),
        (FakeRecord(b"c-1", b"", 7), UNTIMED),
    ],
    ids=["no-value", "empty-value", "no-time"],
)
def test_a_plain_record_without_a_value_is_a_deletion_and_one_without_a_time_says_so(
    record: FakeRecord, flags: int
) -> None:
    _, (value,) = decode_plain([record], refuse, known)

    assert header_of(value).flags == flags
    assert len(value) == HEADER_SIZE


def test_a_key_may_name_a_member_of_a_group() -> None:
    keys, values = decode_plain([FakeRecord(b"g\0s\0m", b"x", 1)], refuse, known)

    assert keys == [b"g\0s\0m"]
    assert len(values) == 1


@pytest.mark.parametrize("key", NO_ROWS)
def test_a_key_that_names_no_row_is_skipped_and_the_rest_is_kept(key: bytes | None) -> None:
    skipped: list[tuple[Record, str]] = []
    poison = FakeRecord(key, b"x", 1)
    keys, values = decode_plain(
        [poison, FakeRecord("größe".encode(), b"y", 2)],
        lambda record, error: skipped.append((record, error.reason)),
        known,
    )

    assert skipped == [(poison, "key")]
    assert keys == ["größe".encode()]
    assert len(values) == 1


def value(epoch: int, sequence: int, offset: int = 0) -> bytes:
    return HEADER.pack(epoch, sequence, offset, 0, 0, 0)


def test_a_higher_sequence_wins_and_an_equal_one_does_not() -> None:
    held = [value(1, 5)] * 3
    rows, older = newest_rows([b"a", b"b", b"c"], [value(1, 4), value(1, 5), value(1, 6)], held)

    assert rows == {b"c": value(1, 6)}
    assert older == 2


def test_a_higher_epoch_wins_over_any_sequence() -> None:
    rows, _ = newest_rows([b"a"], [value(2, 0)], [value(1, 2**60)])

    assert rows == {b"a": value(2, 0)}


def test_within_a_batch_the_highest_wins_whatever_its_place() -> None:
    rows, older = newest_rows([b"a"] * 3, [value(1, 1), value(1, 9), value(1, 3)], [None] * 3)

    assert rows == {b"a": value(1, 9)}
    assert older == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30), st.integers(0, 30))
def test_any_replay_of_a_log_gives_the_same_rows(log: list[tuple[int, int]], again_from: int) -> None:
    def apply(fences: list[tuple[int, int]], held: dict[bytes, bytes]) -> None:
        for fence in fences:
            held.update(newest_rows([b"k"], [value(*fence)], [held.get(b"k")])[0])

    once: dict[bytes, bytes] = {}
    apply(log, once)
    twice = dict(once)
    apply(log[again_from:], twice)

    assert twice == once
