"""Which keys a scan reads."""

from query_service.lookups.scan_range import key_range
from statecast.query.v1 import query_service_pb2 as query


def in_range(key: str, **fields: str) -> bool:
    first, end = key_range(query.ScanStatesRequest(store="s", **fields))  # type: ignore[arg-type]
    return first <= key.encode() < end


def test_a_group_is_its_value_and_its_members() -> None:
    assert in_range("g", group="g")
    assert in_range("g\x001\x00m", group="g")
    assert not in_range("g1", group="g")
    assert not in_range("f\x001\x00m", group="g")


def test_without_a_group_every_row_is_in_the_range_and_nothing_of_the_store_itself() -> None:
    assert in_range("\x01")
    assert in_range("\U0010ffff")
    assert not in_range("\0format")


def test_a_prefix_ends_before_the_next_one() -> None:
    assert in_range("g\x002\x00m", group="g", sort_prefix="2")
    assert in_range("g\x002\U0010ffff\x00m", group="g", sort_prefix="2")
    assert not in_range("g\x003\x00m", group="g", sort_prefix="2")
    assert not in_range("g", group="g", sort_prefix="2")


def test_a_prefix_and_a_sub_range_hold_together() -> None:
    fields = {"group": "g", "sort_prefix": "2", "sort_from": "25", "sort_to": "28"}

    assert in_range("g\x0025\x00m", **fields)
    assert not in_range("g\x0024\x00m", **fields)
    assert not in_range("g\x0028\x00m", **fields)
