"""Reads a page of one partition, and a page of a whole store: a page of each partition, at once, merged by key."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from query_service.cluster.view import View
from query_service.errors import BadTokenError
from query_service.reads import Page, Row
from query_service.reads.messages import freshness_message
from query_service.reads.page_token import Cursor, decode_scan, encode_scan
from query_service.reads.request_checks import Limits
from query_service.reads.wire import epoch_bytes, header_fields, state_bytes
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, group_range
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1.shard_service_pb2 import FEATURE_GROUP_WINDOWS, Feature

MAX_PAGE_BYTES = 1 << 20
_VISITS_PER_ROW = 10
# Else a caller who asks for one row at a time walks through the expired rows of a group in steps of ten.
_MIN_VISITS = 1000
_WINDOWS = frozenset({Feature.Name(FEATURE_GROUP_WINDOWS)})
_FIRST_ROW = b"\1"  # keys that begin with NUL are the store's own
_AFTER_ROWS = b"\xff"  # no UTF-8 text begins with it


def _key_range(request: api.ScanStatesRequest) -> tuple[bytes, bytes]:
    """Returns the first key of the scan and the key to stop before; the range is empty when that is not above it."""
    if request.group:
        return _range_in(request.group, request)
    if Window(request).is_empty:
        return b"", b""
    return request.group_from.encode() or _FIRST_ROW, request.group_to.encode() or _AFTER_ROWS


def features_of(request: api.ScanStatesRequest) -> frozenset[str]:
    """Returns the features that an instance needs, so that it does not answer all groups of its part."""
    window = request.group_from or request.group_to or request.sort_from or request.sort_to or request.sort_prefix
    return _WINDOWS if window and not request.group else frozenset()


def _range_in(group: str, request: api.ScanStatesRequest) -> tuple[bytes, bytes]:
    """Returns the part of a group that the sort values of the query leave, as `_key_range` does."""
    first, end = group_range(group, request.sort_from, request.sort_to)
    if request.sort_prefix:
        prefix = f"{group}\0{request.sort_prefix}".encode()
        after_prefix = prefix[:-1] + bytes((prefix[-1] + 1,))  # the last byte of UTF-8 is never 255
        first, end = max(first, prefix), min(end, after_prefix)
    return first, end


class Window:
    """A part of the sort values of every group, so that a scan seeks to it in each group and reads little else."""

    def __init__(self, request: api.ScanStatesRequest) -> None:
        self._reverse = request.reverse
        # The group "" stands for all: the bytes before and behind the sort values are the same in each.
        self._first, self._end = _range_in("", request)
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
    request: api.ScanStatesRequest, replica: Replica, cursor: Cursor | None, size: int, freshness: Freshness
) -> Page:
    """Returns at most `size` rows after `cursor`, and the token of the next page when there are more rows.

    A page also ends before it would pass 1 MiB, unless its first row does, and after ten visits per row, but a thousand
    at least: it never takes long, so where rows expire, or few groups have a row in the window, it may be short, or
    even empty, and still have a next one. Raises NotServedError when the store has moved away.
    """
    first, end = _key_range(request)
    last_key = cursor.last_key if cursor else b""
    if cursor and not first <= last_key < end:
        raise BadTokenError("page_token: it names a row outside the range: pass back next_page_token")
    if cursor:
        first, end = (first, last_key) if request.reverse else (last_key + b"\0", end)
    epoch = epoch_bytes(freshness.epoch)
    used = 0
    rows: list[Row] = []
    max_visits = max(size * _VISITS_PER_ROW, _MIN_VISITS)
    skip = (
        None
        if request.group or not (request.sort_from or request.sort_to or request.sort_prefix)
        else Window(request).skip
    )
    for visits, (key, value) in enumerate(replica.scan(first, end, reverse=request.reverse, skip=skip)):
        read = len(key) + len(value)
        if len(rows) == size or visits == max_visits or (rows and used + read > MAX_PAGE_BYTES):
            return Page(rows, encode_scan(request, Cursor(last_key)), freshness_message(freshness))
        last_key = key
        if not value[FLAGS_AT] & DELETED and (skip is None or skip(key) is None):
            used += read
            rows.append(Row(key, state_bytes(key, epoch, header_fields(value), value)))
    return Page(rows, "", freshness_message(freshness))


async def store_page(
    request: api.ScanStatesRequest,
    view: View,
    limits: Limits,
    read: Callable[[api.ScanStatesRequest, int], Awaitable[Page]],
) -> Page:
    """Returns a page that `read` reads from each partition; raises its first error: the page is whole, or fails."""
    cursor = decode_scan(request, request.page_token)
    partitions = partitions_of(view, request, cursor)
    size = limits.rows(request.page_size)
    token = encode_scan(request, Cursor(cursor.last_key)) if cursor else ""
    part = api.ScanStatesRequest()
    part.CopyFrom(request)
    part.page_size, part.page_token = share_of(size, len(partitions)), token
    reads = [asyncio.ensure_future(read(part, partition)) for partition in sorted(partitions)]
    try:
        pages = await asyncio.gather(*reads)
    finally:
        for task in reads:
            task.cancel()
    rows, last_key = merge(request, pages, size, MAX_PAGE_BYTES)
    next_page_token = ""
    if last_key is not None:
        bits = sum(1 << partition for partition in partitions) if request.local_only else None
        next_page_token = encode_scan(request, Cursor(last_key, bits))
    shards = [page.freshness for page in pages if page.freshness is not None]
    stalest = max(shards, key=lambda freshness: freshness.lag_ms, default=None)
    return Page(rows, next_page_token, stalest, shards)


def partitions_of(view: View, request: api.ScanStatesRequest, cursor: Cursor | None) -> frozenset[int]:
    """Returns all partitions of the store, or, `local_only`, those owned when the scan began. Raises BadTokenError."""
    every = range(view.topic(request.store).partitions)
    if not request.local_only:
        return frozenset(every)
    if cursor is None:
        return view.owned(request.store)
    if not cursor.partitions or cursor.partitions >> len(every):
        raise BadTokenError("page_token: it names partitions that the store does not have: pass back next_page_token")
    return frozenset(each for each in every if cursor.partitions >> each & 1)


def share_of(size: int, partitions: int) -> int:
    """Returns how many rows to ask of each partition: half as much again as its share, since a hash spreads groups."""
    return size if partitions < 2 else min(size, size * 3 // (2 * partitions) + 16)


def merge(
    request: api.ScanStatesRequest, pages: Sequence[Page], size: int, max_bytes: int
) -> tuple[list[Row], bytes | None]:
    """Returns at most `size` rows and `max_bytes`, but a first row of any size, and the key to go on after.

    The key is None after the last row.

    A partition with a next page may hold any key after this one, so the least such end is also that of the merge.
    """
    cursors = [decode_scan(request, page.next_page_token) for page in pages]
    ends = [cursor.last_key for cursor in cursors if cursor is not None]
    end = (max if request.reverse else min)(ends, default=None)
    merged: list[Row] = []
    used = 0
    for row in sorted((row for page in pages for row in page.rows), key=lambda row: row.key, reverse=request.reverse):
        if end is not None and (row.key < end if request.reverse else row.key > end):
            break
        if len(merged) == size or (merged and used + len(row.state) > max_bytes):
            return merged, merged[-1].key
        merged.append(row)
        used += len(row.state)
    return merged, end
