"""The token between two pages."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_service.errors import BadTokenError
from query_service.lookups import page_token
from query_service.lookups.page_token import Cursor
from statecast.query.v1 import query_service_pb2 as query


def request(group: str = "g", **fields: object) -> query.ScanStatesRequest:
    return query.ScanStatesRequest(store="s", group=group, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("partitions", [None, frozenset({0}), frozenset({0, 7, 8, 4095})])
def test_a_token_names_the_last_row_and_the_partitions(partitions: frozenset[int] | None) -> None:
    cursor = Cursor(b"g\x001\x00m", partitions)

    assert page_token.decode(request(), page_token.encode(request(), cursor)) == cursor


def test_no_token_is_the_first_page() -> None:
    assert page_token.decode(request(), "") is None


def test_a_token_of_very_many_partitions_stays_small() -> None:
    token = page_token.encode(request(), Cursor(b"key", frozenset(range(4096))))

    assert len(token) < 800


@pytest.mark.parametrize("token", ["x", "????", "AAAA", "größe", "MQ==", "MQ" + "A" * 30])
def test_a_token_of_nobody_is_refused(token: str) -> None:
    with pytest.raises(BadTokenError, match="page_token: it is not a token"):
        page_token.decode(request(), token)


def test_a_token_that_was_cut_short_is_refused() -> None:
    token = page_token.encode(request(), Cursor(b"key", frozenset(range(64))))

    with pytest.raises(BadTokenError, match="page_token: it is not a token"):
        page_token.decode(request(), token[:16])


@pytest.mark.parametrize(
    "changed",
    [
        request("h"),
        request(sort_from="1"),
        request(sort_to="1"),
        request(sort_prefix="1"),
        request(reverse=True),
        request(local_only=True),
    ],
)
def test_a_token_of_another_request_is_refused(changed: query.ScanStatesRequest) -> None:
    token = page_token.encode(request(), Cursor(b"g"))

    with pytest.raises(BadTokenError, match="page_token: it was made for other fields"):
        page_token.decode(changed, token)


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(content: bytes) -> None:
    honest = base64.urlsafe_b64decode(page_token.encode(request(), Cursor(b"k")))
    for token in (content, honest[:9] + content):
        try:
            cursor = page_token.decode(request(), base64.urlsafe_b64encode(token).decode())
        except BadTokenError:
            continue
        assert cursor is None or cursor.last_key


def test_page_size_and_bounds_may_change_between_pages() -> None:
    token = page_token.encode(request(), Cursor(b"g"))

    assert page_token.decode(request(page_size=7, bounds={"max_lag_ms": 1}), token) == Cursor(b"g")
