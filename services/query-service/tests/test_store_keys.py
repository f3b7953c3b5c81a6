"""What stands on disk."""

import pytest

from query_service.store_keys import (
    HEADER,
    deleted_row,
    deletion_key,
    deletions_before,
    group_range,
    header_of,
    key_parts,
    offset_of,
    row_key,
)


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


def test_deletions_sort_by_time_and_name_their_row() -> None:
    early, late = deletion_key(1_000, b"z"), deletion_key(70_000, b"a")

    assert early < deletions_before(1_001) < late
    assert deleted_row(late) == b"a"
