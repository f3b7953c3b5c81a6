"""The tokens between two pages, of a scan and of versions."""

import base64
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_service.errors import BadTokenError
from query_service.reads import page_token
from query_service.reads.page_token import Cursor
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1.page_token_pb2 import PageToken
from statecast.query.v1.query_pb2 import Bounds
from statecast.query.v1.query_service_pb2 import ListVersionsRequest, ScanStatesRequest
from statecast.state.v1.state_pb2 import StateKey


def scan(group: str = "g", **fields: Any) -> ScanStatesRequest:
    return ScanStatesRequest(store="s", group=group, **fields)


@pytest.mark.parametrize("partitions", [None, 0b1, 1 << 4095 | 0b1_1000_0001])
def test_a_token_names_the_last_row_and_the_partitions(partitions: int | None) -> None:
    cursor = Cursor(b"g\x001\x00m", partitions)

    assert page_token.decode_scan(scan(), page_token.encode_scan(scan(), cursor)) == cursor


def test_no_token_is_the_first_page() -> None:
    assert page_token.decode_scan(scan(), "") is None
    assert page_token.decode_versions(versions(), 77) == MAX_OFFSET


def test_a_token_of_very_many_partitions_stays_small() -> None:
    token = page_token.encode_scan(scan(), Cursor(b"key", (1 << 4096) - 1))

    assert len(token) < 800


@pytest.mark.parametrize("token", ["x", "!!!", "????", "AAAA", "größe", "MQ==", "MQ" + "A" * 30])
def test_a_token_of_nobody_is_refused(token: str) -> None:
    with pytest.raises(BadTokenError, match="page_token: it is not a token of this service"):
        page_token.decode_scan(scan(), token)
    with pytest.raises(BadTokenError, match="page_token: it is not a token of this service"):
        page_token.decode_versions(versions(token=token), 77)


def test_a_token_that_was_cut_short_is_refused() -> None:
    token = page_token.encode_scan(scan(), Cursor(b"key", (1 << 64) - 1))

    with pytest.raises(BadTokenError, match="page_token: it is not a token"):
        page_token.decode_scan(scan(), token[:16])


def test_tokens_of_a_release_are_read() -> None:
    """If this fails, a token that a caller holds across an upgrade is refused: raise the version."""
    every_field = {"group_from": "a", "group_to": "b", "sort_from": "1", "sort_to": "2", "sort_prefix": "3"}
    asked = scan(reverse=True, **every_field)
    key = StateKey(group="g", sort="1", member="m")
    of_key = ListVersionsRequest(store="s", key=key, page_token="CAESCCxVuh3SLvOYIgQITRAq")

    cursor = Cursor(b"g\x001\x00m", 1 << 9 | 1)
    assert page_token.decode_scan(asked, "CAESCDn1Meqs3ZftGgsKBWcAMQBtEgIBAg==") == cursor
    assert page_token.decode_versions(of_key, 77) == 42


def versioned(token: str, version: int) -> str:
    changed = PageToken.FromString(base64.urlsafe_b64decode(token))
    changed.version = version
    return base64.urlsafe_b64encode(changed.SerializeToString()).decode()


def test_a_token_of_a_newer_release_begins_with_the_first_page() -> None:
    token = page_token.encode_scan(scan(), Cursor(b"g"))

    assert page_token.decode_scan(scan(), versioned(token, 1)) == Cursor(b"g")
    with pytest.raises(BadTokenError, match="newer release made it: begin with the first page"):
        page_token.decode_scan(scan(), versioned(token, 2))
    with pytest.raises(BadTokenError, match="not a token"):
        page_token.decode_scan(scan(), versioned(token, 0))


def test_fields_that_are_added_to_tokens_later_are_passed_over() -> None:
    token = page_token.encode_scan(scan(), Cursor(b"g"))
    later = base64.urlsafe_b64encode(base64.urlsafe_b64decode(token) + b"\xf2\x01\x01x").decode()

    assert page_token.decode_scan(scan(), later) == Cursor(b"g")


def test_tokens_of_scans_and_of_versions_are_not_exchanged() -> None:
    with pytest.raises(BadTokenError, match="not a token"):
        page_token.decode_scan(scan(), page_token.encode_versions(versions(), 77, 42))
    with pytest.raises(BadTokenError, match="another key or call"):
        page_token.decode_versions(versions(token=page_token.encode_scan(scan(), Cursor(b"g"))), 77)


@pytest.mark.parametrize(
    "changed",
    [
        scan("h"),
        *(scan(**{name: "1"}) for name in ("group_from", "group_to", "sort_from", "sort_to", "sort_prefix")),
        scan(reverse=True),
        scan(local_only=True),
    ],
)
def test_a_token_of_another_request_is_refused(changed: ScanStatesRequest) -> None:
    token = page_token.encode_scan(scan(), Cursor(b"g"))

    with pytest.raises(BadTokenError, match="page_token: it was made for other fields"):
        page_token.decode_scan(changed, token)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    honest = base64.urlsafe_b64decode(page_token.encode_scan(scan(), Cursor(b"k")))
    for token in (content, honest[:9] + content):
        try:
            cursor = page_token.decode_scan(scan(), base64.urlsafe_b64encode(token).decode())
        except BadTokenError:
            continue
        assert cursor is None or cursor.last_key


def test_page_size_and_bounds_may_change_between_pages() -> None:
    token = page_token.encode_scan(scan(), Cursor(b"g"))

    assert page_token.decode_scan(scan(page_size=7, bounds=Bounds(max_lag_ms=1)), token) == Cursor(b"g")


def versions(group: str = "g", token: str = "") -> ListVersionsRequest:
    return ListVersionsRequest(store="s", key=StateKey(group=group), page_token=token)


def test_a_token_of_versions_is_taken_for_its_key_and_topic_alone() -> None:
    token = page_token.encode_versions(versions(), 77, 42)

    assert page_token.decode_versions(versions(token=token), 77) == 42
    with pytest.raises(BadTokenError, match="another key"):
        page_token.decode_versions(versions("other", token), 77)
    with pytest.raises(BadTokenError, match="recreated"):
        page_token.decode_versions(versions(token=token), 78)


def test_a_token_takes_no_more_memory_than_its_bytes() -> None:
    """Anybody can make one: it has no secret."""
    honest = PageToken.FromString(base64.urlsafe_b64decode(page_token.encode_scan(scan(), Cursor(b"g"))))
    honest.scan.partitions = b"\xff" * 100_000
    made = base64.urlsafe_b64encode(honest.SerializeToString()).decode()
    tracemalloc.start()
    page_token.decode_scan(scan(), made)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 20
