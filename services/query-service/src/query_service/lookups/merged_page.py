"""Merges the pages of several partitions into one page of a store, in the order of the keys."""

from collections.abc import Sequence

from query_service.lookups import page_token
from query_service.lookups.page_token import Cursor
from query_service.storage.store_keys import row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query


def share_of(size: int, partitions: int) -> int:
    """Returns how many states to ask of each partition for a page of `size`.

    Groups are spread by a hash, so a partition has about `size / partitions` of the page; half as much again makes a
    full page likely. When one partition has more of it, the page gets short.
    """
    return size if partitions < 2 else min(size, size * 3 // (2 * partitions) + 16)


def merge(
    request: query.ScanStatesRequest, pages: Sequence[query.ScanStatesResponse], size: int, most_bytes: int
) -> tuple[query.ScanStatesResponse, bytes | None]:
    """Returns at most `size` states and `most_bytes` of payload, and the key to go on after; None after the last row.

    A partition whose page has a next one may hold any key after that page, so nothing beyond the least such place
    is returned. Where that is, the next merge goes on; what was read beyond it is read again.
    """
    answer = query.ScanStatesResponse()
    through = _through(request, pages)
    used = 0
    last_key: bytes | None = None
    for key, state in _in_order(request, pages):
        if through is not None and (key < through if request.reverse else key > through):
            break
        if len(answer.states) == size or used >= most_bytes:
            return answer, last_key
        answer.states.append(state)
        used += len(state.payload)
        last_key = key
    return answer, through


def _through(request: query.ScanStatesRequest, pages: Sequence[query.ScanStatesResponse]) -> bytes | None:
    cursors = [page_token.decode(request, page.next_page_token) for page in pages]
    ends = [cursor.last_key for cursor in cursors if isinstance(cursor, Cursor)]
    if not ends:
        return None
    return max(ends) if request.reverse else min(ends)


def _in_order(
    request: query.ScanStatesRequest, pages: Sequence[query.ScanStatesResponse]
) -> list[tuple[bytes, query_pb2.State]]:
    rows = [
        (row_key(state.key.group, state.key.sort, state.key.member), state) for page in pages for state in page.states
    ]
    return sorted(rows, key=lambda row: row[0], reverse=request.reverse)
