"""Rows that are too old are hidden."""

from query_service.lookups.answers import is_value
from query_service.storage.retention import unexpired, unexpired_rows
from query_service.storage.store_keys import HEADER, UNTIMED

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
