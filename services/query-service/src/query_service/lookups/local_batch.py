"""Answers the part of a batch that lies in one partition, at once or when the first of its keys or ranges changes."""

import asyncio
from collections.abc import Callable

from query_service.errors import InvalidRequestError, TooLargeError
from query_service.freshness import Freshness
from query_service.lookups import BatchQuery, BatchResult, RangeQuery, RangeResult, Row
from query_service.lookups.replica_reads import absence_of, is_value
from query_service.lookups.request_checks import Limits
from query_service.storage.changes import Watcher
from query_service.storage.replica import Replica
from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER_SIZE, group_range, offset_of, row_key
from statecast.position import Position

_GATHER_S = 0.003
_MAX_VISITS = 20_000
_MAX_VISITS_OF_RANGE = 10_000

_Changes = list[tuple[bytes, bytes | None]]


class LocalBatch:
    """Keys and ranges of one partition, in a replica that is fresh enough."""

    def __init__(self, replica: Replica, query: BatchQuery, limits: Limits, instance: str) -> None:
        self._replica = replica
        self._query = query
        self._limits = limits
        self._instance = instance
        self._keys = [row_key(group, sort, member) for group, sort, member, _, _, _ in query.keys]

    async def result(self, until: float, monotonic: Callable[[], float]) -> BatchResult:
        """Returns what is newer, waiting until a time at most for a first change."""
        if until <= monotonic():
            return self._look_up()
        groups = {query.group.encode() for query in self._query.ranges}
        with self._replica.changes.watched_by(Watcher(set(self._keys), groups)) as watcher:
            result = self._look_up()
            while not result.has_news and await watcher.wait(until - monotonic()):
                await asyncio.sleep(_GATHER_S)
                result = self._look_up()
            return result if result.has_news else self._look_up()

    def _look_up(self) -> BatchResult:
        freshness = self._replica.freshness(self._instance)
        result = BatchResult(freshness=[freshness])
        if self._keys:
            self._look_up_keys(freshness, result)
        reader = RangeReader(self._replica, freshness, self._limits)
        for index, query in enumerate(self._query.ranges):
            try:
                range_result = reader.read(query)
            except (InvalidRequestError, TooLargeError) as failure:
                result.ranges.append((index, failure))
            else:
                if range_result is not None:
                    result.ranges.append((index, range_result))
        return result

    def _look_up_keys(self, freshness: Freshness, result: BatchResult) -> None:
        epoch = freshness.epoch
        values = self._replica.read(self._keys)
        purged_offset = self._replica.store.purged_offset  # after the values: see PartitionStore.purge_deletions
        add = result.keys.append
        queries = zip(self._query.keys, values, strict=True)
        for index, ((_, _, _, after_epoch, after_offset, _), value) in enumerate(queries):
            if after_epoch == epoch and (purged_offset if value is None else offset_of(value)) <= after_offset:
                continue
            if value is None or value[FLAGS_AT] & DELETED:
                add((index, epoch, absence_of(value, freshness, purged_offset)))
            else:
                add((index, epoch, value))


class RangeReader:
    """Reads the ranges of one batch, as of a freshness that was taken before.

    It reads so many rows and remembered deletions in all, and so many of one range, so that it never holds the event
    loop for long. What is left over fails with TooLargeError. A whole range has at most a page of rows, and a default
    page when its query names no limit.
    """

    def __init__(self, replica: Replica, freshness: Freshness, limits: Limits) -> None:
        self._replica = replica
        self._freshness = freshness
        self._position = Position(freshness.epoch, freshness.applied_offset)
        self._limits = limits
        self._visits_left = _MAX_VISITS

    def read(self, query: RangeQuery) -> RangeResult | None:
        """Returns what is new; None when there is no news.

        Raises InvalidRequestError for a store that has no ranges, NotServedError as Replica does.
        """
        if self._replica.definition.retain is not None:
            name = self._replica.definition.name
            raise InvalidRequestError(f"ranges: rows of `{name}` leave it in time, without a record: scan it instead")
        changed = self._changed(query)
        if changed is None:
            return self._whole(query)
        if not changed and not query.whole:
            return None
        removals = [(key, absence_of(value, self._freshness)) for key, value in changed if not is_value(value)]
        if query.whole or len(changed) > self._limits.rows(query.limit):
            return self._whole(query)._replace(removals=removals, removals_complete=True)
        rows = [_row(key, self._position.epoch, value) for key, value in changed if is_value(value)]
        return RangeResult(self._position, rows, removals, removals_complete=True)

    def _changed(self, query: RangeQuery) -> _Changes | None:
        """The rows of the range that changed since the caller looked, in that order; None when that is not known."""
        if query.after is None or query.after.epoch != self._freshness.epoch:
            return None
        after = query.after.offset
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        keys = self._replica.recent.changed_after(query.group.encode(), after)
        if keys is None:
            return self._changed_on_disk(first, end, after)
        keys = [key for key in keys if first <= key < end]
        if not keys:
            return []
        self._visit(len(keys))
        return list(zip(keys, self._replica.read(keys), strict=True))

    def _changed_on_disk(self, first: bytes, end: bytes, after: int) -> _Changes | None:
        changed: list[tuple[bytes, bytes]] = []
        for visits, (key, value) in enumerate(self._replica.scan(first, end, reverse=False), 1):
            if visits > _MAX_VISITS_OF_RANGE:
                return None
            self._visit(1)
            if offset_of(value) > after:
                changed.append((key, value))
        # After the rows, so that no deletion can have been forgotten unseen: see PartitionStore.purge_deletions.
        if self._replica.store.purged_offset > after:
            return None
        return [*sorted(changed, key=lambda row: offset_of(row[1]))]

    def _whole(self, query: RangeQuery) -> RangeResult:
        limit = self._limits.rows(query.limit)
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        rows: list[Row] = []
        for visits, (key, value) in enumerate(self._replica.scan(first, end, reverse=query.reverse), 1):
            if visits > _MAX_VISITS_OF_RANGE:
                raise TooLargeError("ranges: too many deletions are remembered in the range: ask for a smaller one")
            self._visit(1)
            if not is_value(value):
                continue
            if len(rows) == limit:
                return RangeResult(self._position, rows, whole=True, more=True)
            rows.append(_row(key, self._position.epoch, value))
        return RangeResult(self._position, rows, whole=True)

    def _visit(self, rows: int) -> None:
        self._visits_left -= rows
        if self._visits_left < 0:
            raise TooLargeError(
                "ranges: the answer would read too many rows: ask for fewer or smaller ranges at a time"
            )


def _row(key: bytes, epoch: int, value: bytes) -> Row:
    return Row(key, epoch, value, len(value) - HEADER_SIZE)
