"""What changed lately is known by group, within a bound, and never more than is known is claimed."""

from query_service.storage.recent_changes import RecentChanges, group_of
from query_service.storage.store_keys import HEADER


def rows(**offsets: int) -> dict[bytes, bytes]:
    """Stored values by key, written `group_member`."""
    return {key.replace("_", "\0s\0").encode(): HEADER.pack(1, at, at, 0, 0, 0) for key, at in offsets.items()}


def names(keys: list[bytes] | None) -> list[str] | None:
    return None if keys is None else [key.decode().replace("\0s\0", "_") for key in keys]


def test_the_rows_of_a_group_come_in_the_order_of_their_last_change() -> None:
    recent = RecentChanges(10, -1)
    recent.note(rows(a_1=0, b_1=1, a_2=2))
    recent.note(rows(a_1=4, a_3=3))

    assert names(recent.since(b"a", -1)) == ["a_2", "a_3", "a_1"]
    assert names(recent.since(b"a", 3)) == ["a_1"]
    assert names(recent.since(b"a", 4)) == []
    assert names(recent.since(b"b", 0)) == ["b_1"]
    assert names(recent.since(b"never", -1)) == []


def test_what_was_not_noted_is_not_known() -> None:
    recent = RecentChanges(10, 5)

    assert recent.since(b"a", 4) is None
    assert recent.since(b"a", 5) == []


def test_the_oldest_changes_are_forgotten_beyond_the_bound() -> None:
    recent = RecentChanges(2, -1)
    recent.note(rows(a_1=0, a_2=1, b_1=2))

    assert recent.since(b"a", -1) is None
    assert names(recent.since(b"a", 0)) == ["a_2"]
    recent.note(rows(b_1=3, c_1=4))
    assert recent.since(b"a", 0) is None
    assert names(recent.since(b"b", 1)) == ["b_1"]


def test_a_bound_of_none_knows_nothing_but_that_nothing_is_newer() -> None:
    recent = RecentChanges(0, -1)
    recent.note(rows(a_1=7))

    assert recent.since(b"a", 6) is None
    assert recent.since(b"a", 7) == []


def test_a_store_that_starts_over_forgets_everything() -> None:
    recent = RecentChanges(10, -1)
    recent.note(rows(a_1=7))
    recent.forget(9)

    assert recent.since(b"a", 8) is None
    assert recent.since(b"a", 9) == []


def test_the_group_of_a_key_is_its_first_part() -> None:
    assert group_of(b"customer-1\x002024\x00order-1") == group_of(b"customer-1") == b"customer-1"
