"""The format of keys and values on disk."""

import pytest

from query_service.storage import store_keys
from query_service.storage.store_keys import (
    DELETED_PREFIX,
    HEADER,
    UNTIMED,
    commit_ms_of,
    due_key,
    due_row,
    group_range,
    header_of,
    key_parts,
    kind_of,
    offset_of,
    row_key,
    version_key,
)
from testkit.query_service import store_definition


def test_a_key_survives_the_way_there_and_back() -> None:
    for parts in (("order-1", "", ""), ("customer-1", "2024-08-28T12:34:56.123456Z", "order-1"), ("größe", "1", "ß")):
        assert key_parts(row_key(*parts)) == parts


@pytest.mark.parametrize("key", [b"", b"\0a\0b", b"a\0b", b"a\0b\0c\0d", b"\xff"])
def test_a_key_that_names_no_row_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"key|utf-8"):
        key_parts(key)


def test_a_header_survives_the_way_there_and_back() -> None:
    value = HEADER.pack(3, 4, 5, 6, 7, 1) + b"payload"

    assert tuple(header_of(value)) == (3, 4, 5, 6, 7, 1)
    assert header_of(value).deleted
    assert offset_of(value) == 5


def test_fences_compare_as_bytes_like_their_numbers() -> None:
    fences = [(0, 0), (0, 1), (0, 255), (0, 256), (1, 0), (1, 2**62), (2, 0), (2**40, 1)]
    packed = [HEADER.pack(*fence, 0, 0, 0, 0)[:16] for fence in fences]

    assert packed == sorted(packed)


def test_a_range_holds_the_sort_values_from_the_first_up_to_but_not_the_last() -> None:
    first, end = group_range("g", "20", "40")
    keys = [row_key("g", sort, "m") for sort in ("10", "20", "30", "40", "50")]

    assert [first <= key < end for key in keys] == [False, True, True, False, False]


def test_an_open_range_holds_the_group_and_no_other() -> None:
    first, end = group_range("g", "", "")

    assert first <= row_key("g", "", "") < end
    assert first <= row_key("g", "\uffff", "m") < end
    assert not first <= row_key("g0", "", "") < end
    assert not first <= row_key("f", "1", "m") < end


def test_what_is_due_sorts_by_time_and_names_its_row() -> None:
    early, late = due_key(DELETED_PREFIX, 1_000, b"z"), due_key(DELETED_PREFIX, 70_000, b"a")

    assert early < due_key(DELETED_PREFIX, 1_001, b"") < late
    assert due_row(DELETED_PREFIX, late) == b"a"


def test_versions_sort_by_row_and_offset_and_no_row_is_within_another() -> None:
    keys = [version_key(key, offset) for key in (b"a", b"b", b"a\0s\0m") for offset in (1, 2, 70_000)]

    assert keys == sorted(keys)


def test_a_commit_time_is_in_milliseconds_or_unknown() -> None:
    assert commit_ms_of(HEADER.pack(1, 1, 1, 5, 67_000_000, 0)) == 5067
    assert commit_ms_of(HEADER.pack(1, 1, 1, 5, 0, UNTIMED)) is None


def test_the_kind_names_what_makes_a_directory_another_one() -> None:
    plain = {"format": "plain", "message": "json"}

    assert kind_of(store_definition(replicas=3)) == b"state-record"
    assert kind_of(store_definition(history={"versions": 2})) == kind_of(store_definition(history={"versions": 9}))
    assert kind_of(store_definition(**plain, retain="1h", history={"age": "1h"})) == (
        b"plain retained versions-for-a-time"
    )


def test_keys_and_values_on_disk_are_byte_for_byte_those_of_format_2() -> None:
    assert store_keys.FORMAT == 2
    assert [store_keys.FORMAT_KEY, store_keys.IDENTITY_KEY, store_keys.KIND_KEY] == [
        b"\0format",
        b"\0identity",
        b"\0kind",
    ]
    assert [store_keys.NEXT_KEY, store_keys.CURRENT_KEY, store_keys.PURGED_KEY] == [
        b"\0next",
        b"\0current",
        b"\0purged",
    ]
    assert store_keys.MARKER_PREFIX == b"\0marker\0"
    assert (store_keys.SPREAD_KEY, store_keys.MISPLACED_PREFIX) == (b"\0spread", b"\0misplaced\0")
    assert store_keys.identity_of("the-topic", 3) == b"the-topic/3"
    assert store_keys.NUMBER.pack(-1) == b"\xff" * 8
    assert due_key(DELETED_PREFIX, 258, b"row") == b"\0deleted\0" + b"\0\0\0\0\0\0\x01\x02" + b"row"
    assert due_key(store_keys.EXPIRES_PREFIX, -5, b"") == b"\0expires\0" + b"\0" * 8
    assert due_key(store_keys.REPLACED_PREFIX, 1, b"") == b"\0replaced\0" + b"\0" * 7 + b"\x01"
    assert version_key(b"row", 5) == b"\0version\0" + b"\0\0\0\x03" + b"row" + b"\0\0\0\0\0\0\0\x05"
    assert row_key("g", "s", "m") == b"g\0s\0m"
    assert HEADER.pack(1, 2, 3, 4, 5, store_keys.DELETED | UNTIMED) == bytes.fromhex(
        "0000000000000001 0000000000000002 0000000000000003 0000000000000004 00000005 03"
    )
