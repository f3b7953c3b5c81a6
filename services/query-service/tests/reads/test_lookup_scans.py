"""One suite of scans for every kind of lookup: local, remote, and routed by way of a peer."""

from collections.abc import Iterator
from threading import get_ident

import pytest

from query_service.cluster.view import View
from query_service.errors import InvalidRequestError, LookupFailedError, NotServedError
from query_service.storage.engine import Skip
from query_service.storage.replica import Replica
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import MessageReads, apply_row, soon

STORE = "orders-by-key"


async def test_a_scan_reads_a_group_page_by_page(lookup: MessageReads, serving_view: View) -> None:
    for number in range(3):
        apply_row(serving_view, STORE, f"g\0{number}\0m", 1, number, b"%d" % number)
    request = query.ScanStatesRequest(store=STORE, group="g")
    first = await lookup.scan(request, soon())
    request.page_token = first.next_page_token
    second = await lookup.scan(request, soon())

    assert [state.payload for state in (*first.states, *second.states)] == [b"0", b"1", b"2"]
    assert first.states[0].key == state_pb2.StateKey(group="g", sort="0", member="m")
    assert second.next_page_token == ""
    assert second.freshness.answered_by == "query-1"


async def test_a_scan_with_a_foreign_token_is_refused(lookup: MessageReads) -> None:
    with pytest.raises(InvalidRequestError, match="page_token"):
        await lookup.scan(query.ScanStatesRequest(store=STORE, group="g", page_token="MQ=="), soon())


async def test_rows_are_read_beside_the_event_loop(
    lookup: MessageReads, serving_view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply_row(serving_view, STORE, "g\x001\0m", 1, 1, b"1")
    threads: list[int] = []
    scan = Replica.scan

    def noting(
        replica: Replica, first: bytes, end: bytes, *, reverse: bool, skip: Skip | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        threads.append(get_ident())
        return scan(replica, first, end, reverse=reverse, skip=skip)

    monkeypatch.setattr(Replica, "scan", noting)
    await lookup.scan(query.ScanStatesRequest(store=STORE, group="g"), soon())
    whole = query.BatchGetStatesRequest(store=STORE, ranges=[query_pb2.RangeQuery(group="g")])
    await lookup.batch(whole, soon())

    assert len(threads) == 2
    assert get_ident() not in threads


ROWS = [f"g{number % 7}\0{number:03d}\0m" for number in range(40)] + [f"single-{number}" for number in range(9)]


async def read_all(lookup: MessageReads, request: query.ScanStatesRequest) -> list[list[str]]:
    """Reads to the end and returns the keys of each page, with NUL between their parts."""
    pages: list[list[str]] = []
    while True:
        answer = await lookup.scan(request, soon())
        keys = [state.key for state in answer.states]
        pages.append(["\0".join(filter(None, (key.group, key.sort, key.member))) for key in keys])
        if not answer.next_page_token:
            return pages
        request.page_token = answer.next_page_token


@pytest.mark.parametrize("size", [1, 3, 20, 100])
async def test_a_whole_store_is_read_in_the_order_of_its_keys(
    lookup: MessageReads, serving_view: View, size: int
) -> None:
    for offset, key in enumerate(ROWS):
        apply_row(serving_view, STORE, key, 1, offset, b"row")
    upwards = await read_all(lookup, query.ScanStatesRequest(store=STORE, page_size=size))
    downwards = await read_all(lookup, query.ScanStatesRequest(store=STORE, page_size=size, reverse=True))

    assert [key for page in upwards for key in page] == sorted(ROWS)
    assert [key for page in downwards for key in page] == sorted(ROWS, reverse=True)
    assert max(map(len, upwards)) <= size


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_window_of_many_groups_is_read_in_the_order_of_its_keys(
    lookup: MessageReads, serving_view: View, reverse: bool
) -> None:
    for offset, key in enumerate(ROWS):
        apply_row(serving_view, STORE, key, 1, offset, b"row")
    request = query.ScanStatesRequest(store=STORE, page_size=3, reverse=reverse)
    request.group_from, request.group_to, request.sort_from, request.sort_to = "g1", "g5", "010", "030"
    pages = await read_all(lookup, request)
    expected = [f"g{number % 7}\0{number:03d}\0m" for number in range(10, 30) if 1 <= number % 7 < 5]

    assert [key for page in pages for key in page] == sorted(expected, reverse=reverse)


async def test_a_page_of_a_store_names_the_freshness_of_every_partition(
    lookup: MessageReads, serving_view: View
) -> None:
    apply_row(serving_view, STORE, "order-1", 1, 5, b"row")
    answer = await lookup.scan(query.ScanStatesRequest(store=STORE), soon())

    assert [each.partition for each in answer.shards] == [0, 1, 2, 3]
    assert {each.answered_by for each in answer.shards} == {"query-1"}
    assert answer.freshness.lag_ms == max(each.lag_ms for each in answer.shards)


async def test_a_store_of_which_a_partition_is_not_served_is_not_given_in_part(
    lookup: MessageReads, serving_view: View
) -> None:
    serving_view.replicas[STORE, 2].progress.serving = False

    with pytest.raises(NotServedError):
        await lookup.scan(query.ScanStatesRequest(store=STORE), soon())


async def test_rows_that_stay_are_read_once_while_others_are_written(lookup: MessageReads, serving_view: View) -> None:
    for offset, key in enumerate(ROWS):
        apply_row(serving_view, STORE, key, 1, offset, b"row")
    request = query.ScanStatesRequest(store=STORE, page_size=5)
    keys: list[str] = []
    number = 100
    while True:
        answer = await lookup.scan(request, soon())
        keys += [state.key.group for state in answer.states if state.key.group.startswith("single-")]
        for key in ("a", "g3\x00new\x00m", f"h{number}", f"single-{number}"):
            apply_row(serving_view, STORE, key, number, number, b"new")
        apply_row(serving_view, STORE, ROWS[number % 40], number, number, None)
        number += 1
        if not answer.next_page_token:
            break
        request.page_token = answer.next_page_token

    assert [key for key in keys if len(key) == len("single-0")] == [f"single-{number}" for number in range(9)]
    assert len(keys) == len(set(keys))


async def test_a_scan_of_an_unknown_store_is_refused(lookup: MessageReads) -> None:
    with pytest.raises(LookupFailedError, match="store"):
        await lookup.scan(query.ScanStatesRequest(store="orders-by-kye"), soon())
