"""Reads a page of one partition, and a page of a whole store: a page of each partition, at once, merged by key."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from query_service.cluster.view import View
from query_service.errors import BadTokenError
from query_service.lookups import PageResult, Row, ScanQuery
from query_service.lookups.page_token import Cursor, decode_scan, encode_scan
from query_service.lookups.request_checks import Limits
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER_SIZE, group_range

MAX_PAGE_BYTES = 1 << 20
_VISITS_PER_ROW = 10
# Else a caller who asks for one row at a time walks through the expired rows of a group in steps of ten.
_MIN_VISITS = 1000
_FIRST_ROW = b"\1"  # what begins with NUL is the store's own
_AFTER_ROWS = b"\xff"  # no UTF-8 text begins with it


def key_range(query: ScanQuery) -> tuple[bytes, bytes]:
    """Returns the first key of the scan and the key to stop before; the range is empty when that is not above it."""
    if query.group:
        return _range_in(query.group, query)
    if Window(query).is_empty:
        return b"", b""
    return query.group_from.encode() or _FIRST_ROW, query.group_to.encode() or _AFTER_ROWS


def _range_in(group: str, query: ScanQuery) -> tuple[bytes, bytes]:
    """Returns the part of a group that the sort values of the query leave, as `key_range` does."""
    first, end = group_range(group, query.sort_from, query.sort_to)
    if query.sort_prefix:
        prefix = f"{group}\0{query.sort_prefix}".encode()
        after_prefix = prefix[:-1] + bytes((prefix[-1] + 1,))  # the last byte of UTF-8 is never 255
        first, end = max(first, prefix), min(end, after_prefix)
    return first, end


class Window:
    """A part of the sort values of every group, so that a scan seeks to it in each group and reads little else."""

    def __init__(self, query: ScanQuery) -> None:
        self._reverse = query.reverse
        # The group "" stands for all: what is before and behind the sort values is the same in each.
        self._first, self._end = _range_in("", query)
        self.is_empty = self._first >= self._end

    def skip(self, key: bytes) -> bytes | None:
        """Returns where the next key of the window may be, for a key outside of it, as the Skip of a scan does."""
        group = key.partition(b"\0")[0]
        first, end = group + self._first, group + self._end
        if first <= key < end:
            return None
        if self._reverse:
            return group if key < first else end
        return first if key < first else group + b"\1"


def partition_page(
    query: ScanQuery, replica: Replica, cursor: Cursor | None, size: int, freshness: Freshness
) -> PageResult:
    """Returns at most `size` rows after `cursor`, and the token of the next page when there are more rows.

    A page also ends at 1 MiB, and after ten visits per row, but a thousand at least: it never takes long, so where rows
    expire, or few groups have a row in the window, it may be short, or even empty, and still have a next one. Raises
    NotServedError when the store has moved away.
    """
    first, end = key_range(query)
    last_key = cursor.last_key if cursor else b""
    if cursor and not first <= last_key < end:
        raise BadTokenError("page_token: it names a row outside the range: pass back next_page_token")
    if cursor:
        first, end = (first, last_key) if query.reverse else (last_key + b"\0", end)
    epoch = replica.topic.epoch
    used = 0
    rows: list[Row] = []
    max_visits = max(size * _VISITS_PER_ROW, _MIN_VISITS)
    skip = None if query.group or not (query.sort_from or query.sort_to or query.sort_prefix) else Window(query).skip
    for visits, (key, value) in enumerate(replica.scan(first, end, reverse=query.reverse, skip=skip)):
        if len(rows) == size or used >= MAX_PAGE_BYTES or visits == max_visits:
            return PageResult(rows, encode_scan(query, Cursor(last_key)), freshness)
        last_key = key
        if not value[FLAGS_AT] & DELETED and (skip is None or skip(key) is None):
            used += len(value)
            rows.append(Row(key, epoch, value, len(value) - HEADER_SIZE))
    return PageResult(rows, "", freshness)


async def store_page(
    query: ScanQuery, view: View, limits: Limits, read: Callable[[ScanQuery, int], Awaitable[PageResult]]
) -> PageResult:
    """Returns a page that `read` reads from each partition; raises what `read` raises first: it is whole, or fails."""
    cursor = decode_scan(query, query.page_token)
    partitions = partitions_of(view, query, cursor)
    size = limits.rows(query.page_size)
    token = encode_scan(query, Cursor(cursor.last_key)) if cursor else ""
    part = query._replace(page_size=share_of(size, len(partitions)), page_token=token)
    reads = [asyncio.ensure_future(read(part, partition)) for partition in sorted(partitions)]
    try:
        pages = await asyncio.gather(*reads)
    finally:
        for task in reads:
            task.cancel()
    rows, last_key = merge(query, pages, size, MAX_PAGE_BYTES)
    next_page_token = ""
    if last_key is not None:
        next_page_token = encode_scan(query, Cursor(last_key, partitions if query.local_only else None))
    shards = [page.freshness for page in pages if page.freshness is not None]
    stalest = max(shards, key=lambda freshness: freshness.lag_ms, default=None)
    return PageResult(rows, next_page_token, stalest, shards)


def partitions_of(view: View, query: ScanQuery, cursor: Cursor | None) -> frozenset[int]:
    """Returns all partitions of the store, or, `local_only`, those owned when the scan began. Raises BadTokenError."""
    every = frozenset(range(view.topic(query.store).partitions))
    if not query.local_only:
        return every
    if cursor is None:
        return view.owned(query.store)
    if not cursor.partitions or not cursor.partitions <= every:
        raise BadTokenError("page_token: it names partitions that the store has not: pass back next_page_token")
    return cursor.partitions


def share_of(size: int, partitions: int) -> int:
    """Returns how many rows to ask of each partition: half as much again as its share, since a hash spreads groups."""
    return size if partitions < 2 else min(size, size * 3 // (2 * partitions) + 16)


def merge(query: ScanQuery, pages: Sequence[PageResult], size: int, max_bytes: int) -> tuple[list[Row], bytes | None]:
    """Returns at most `size` rows and `max_bytes` of payload, and the key to go on after; None after the last row.

    A partition whose page has a next one may hold any key after it, so the least such end is also that of the merge.
    """
    cursors = [decode_scan(query, page.next_page_token) for page in pages]
    ends = [cursor.last_key for cursor in cursors if cursor is not None]
    end = (max if query.reverse else min)(ends, default=None)
    merged: list[Row] = []
    used = 0
    for row in sorted((row for page in pages for row in page.rows), key=lambda row: row.key, reverse=query.reverse):
        if end is not None and (row.key < end if query.reverse else row.key > end):
            break
        if len(merged) == size or used >= max_bytes:
            return merged, merged[-1].key if merged else None
        merged.append(row)
        used += row.size
    return merged, end
