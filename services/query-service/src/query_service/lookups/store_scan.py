"""Reads a page of a whole store: a page of each partition, at once, merged by key."""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from query_service.cluster.view import View
from query_service.errors import BadTokenError
from query_service.lookups import page_token
from query_service.lookups.local_scan import PAGE_BYTES
from query_service.lookups.merged_page import merge, share_of
from query_service.lookups.page_token import Cursor
from statecast.query.v1 import query_service_pb2 as query

ReadPage = Callable[[query.ScanStatesRequest, int], Awaitable[query.ScanStatesResponse]]


def partitions_of(view: View, request: query.ScanStatesRequest, cursor: Cursor | None) -> frozenset[int]:
    """Returns the partitions of the scan: all of the store, or, `local_only`, those owned when the scan began.

    Raises UnknownStoreError, NotServedError while the topic or the group is not known, and BadTokenError for a cursor
    with partitions that there are not.
    """
    every = frozenset(range(view.topic(request.store).partitions))
    if not request.local_only:
        return every
    if cursor is None:
        return view.owned(request.store)
    if not cursor.partitions or not cursor.partitions <= every:
        raise BadTokenError("page_token: it names partitions that the store has not: pass back next_page_token")
    return cursor.partitions


async def page_of_store(
    view: View, request: query.ScanStatesRequest, cursor: Cursor | None, size: int, read: ReadPage
) -> query.ScanStatesResponse:
    """Returns a page of the partitions of the scan. Raises what `partitions_of` and `store_page` raise."""
    return await store_page(request, cursor, partitions_of(view, request, cursor), size, read)


async def store_page(
    request: query.ScanStatesRequest,
    cursor: Cursor | None,
    partitions: Collection[int],
    size: int,
    read: ReadPage,
) -> query.ScanStatesResponse:
    """Returns a page of at most `size` states, read by `read` from each partition.

    Raises what `read` raises first: a page of a store is whole, or not given.
    """
    part = query.ScanStatesRequest()
    part.CopyFrom(request)
    part.page_size = share_of(size, len(partitions))
    part.page_token = page_token.encode(request, Cursor(cursor.last_key)) if cursor else ""
    pages = await _all_of([read(part, partition) for partition in sorted(partitions)])
    answer, last_key = merge(request, pages, size, PAGE_BYTES)
    if last_key is not None:
        chosen = frozenset(partitions) if request.local_only else None
        answer.next_page_token = page_token.encode(request, Cursor(last_key, chosen))
    answer.shards.extend(page.freshness for page in pages)
    if pages:
        answer.freshness.CopyFrom(max(answer.shards, key=lambda freshness: freshness.lag_ms))
    return answer


async def _all_of(reads: Collection[Awaitable[query.ScanStatesResponse]]) -> list[query.ScanStatesResponse]:
    tasks = [asyncio.ensure_future(read) for read in reads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
