"""Pages of partitions become one page of a store."""

from query_service.lookups import page_token
from query_service.lookups.merged_page import merge, share_of
from query_service.lookups.page_token import Cursor
from statecast.query.v1 import query_service_pb2 as query


def request(*, reverse: bool = False) -> query.ScanStatesRequest:
    return query.ScanStatesRequest(store="s", reverse=reverse)


def page(*groups: str, through: str | None = None, reverse: bool = False) -> query.ScanStatesResponse:
    """A page of one partition that has been read through a key, or to the end."""
    answer = query.ScanStatesResponse()
    for group in groups:
        answer.states.add(payload=b"row").key.group = group
    if through is not None:
        answer.next_page_token = page_token.encode(request(reverse=reverse), Cursor(through.encode()))
    return answer


def merged(
    *pages: query.ScanStatesResponse, size: int = 10, most_bytes: int = 1000, reverse: bool = False
) -> tuple[list[str], bytes | None]:
    answer, last_key = merge(request(reverse=reverse), pages, size, most_bytes)
    return [state.key.group for state in answer.states], last_key


def test_states_stand_in_the_order_of_their_keys() -> None:
    assert merged(page("a", "d"), page("b", "c")) == (["a", "b", "c", "d"], None)
    assert merged(page("d", "a"), page("c", "b"), reverse=True) == (["d", "c", "b", "a"], None)


def test_nothing_is_given_beyond_what_every_partition_has_been_read_through() -> None:
    assert merged(page("a", "d", through="d"), page("b", "c", through="c")) == (["a", "b", "c"], b"c")
    assert merged(page("d", "a", through="a", reverse=True), page("c", "b"), reverse=True)[0] == ["d", "c", "b", "a"]
    assert merged(page("d", through="d", reverse=True), page("c"), reverse=True) == (["d"], b"d")


def test_a_full_page_goes_on_after_its_last_state() -> None:
    assert merged(page("a", "c"), page("b", "d"), size=3) == (["a", "b", "c"], b"c")


def test_a_page_that_ends_with_the_last_row_has_no_next_one() -> None:
    assert merged(page("a"), page("b"), size=2) == (["a", "b"], None)


def test_a_large_page_ends_early() -> None:
    assert merged(page("a", "c"), page("b"), most_bytes=4) == (["a", "b"], b"b")


def test_a_page_of_deletions_alone_goes_on_behind_them() -> None:
    assert merged(page(through="k"), page("m")) == ([], b"k")


def test_each_partition_is_asked_for_its_share_and_a_half() -> None:
    assert share_of(1000, 1) == 1000
    assert share_of(1000, 4) == 391
    assert share_of(10, 4) == 10
    assert share_of(10, 0) == 10
