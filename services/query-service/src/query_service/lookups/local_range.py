"""Answers a range of a batch: what changed in it since the caller looked, or all of it."""

from collections.abc import Sequence

from query_service.errors import InvalidRequestError, TooLargeError
from query_service.lookups.answers import fill_absence, fill_state, is_value, state_key
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_keys import group_range, offset_of
from statecast.query.v1 import query_pb2

Row = tuple[bytes, bytes | None]

_MOST_VISITS = 20_000
_MOST_VISITS_OF_RANGE = 10_000


class RangeReader:
    """Reads the ranges of one answer: so many rows and remembered deletions in all, and so many of one range.

    So it never holds the event loop for long. What is left over fails with TooLargeError.
    """

    def __init__(self, page_size: int, default_page_size: int) -> None:
        """A whole answer has at most `page_size` states, and `default_page_size` when no limit is given."""
        self._page_size = page_size
        self._default_page_size = default_page_size
        self._visits_left = _MOST_VISITS

    def fill(
        self, result: query_pb2.RangeResult, host: PartitionHost, asked: query_pb2.RangeQuery, through: int
    ) -> bool:
        """Fills an empty result as of the offset `through`, which was applied before; returns whether there is news.

        Raises InvalidRequestError for a store that has no ranges, NotServedError as PartitionHost does.
        """
        if host.definition.retain is not None:
            name = host.place.store
            raise InvalidRequestError(f"ranges: rows of `{name}` leave it in time, without a record: scan it instead")
        limit = min(asked.limit or self._default_page_size, self._page_size)
        changed = self._changed(host, asked)
        if changed is not None and len(changed) <= limit and not asked.whole:
            if not changed:
                return False
            result.removals_complete = True
            _fill_changed(result, host, changed, through)
        else:
            self._fill_whole(result, host, asked, limit)
            if changed is not None:
                result.removals_complete = True
                _fill_removals(result, host, changed, through)
        result.position.epoch = host.place.epoch
        result.position.offset = through
        return True

    def _changed(self, host: PartitionHost, asked: query_pb2.RangeQuery) -> list[Row] | None:
        """The rows of the range that changed since the caller looked, in that order; None when that is not known."""
        if not asked.HasField("after") or asked.after.epoch != host.place.epoch:
            return None
        after = asked.after.offset
        first, end = group_range(asked.group, asked.sort_from, asked.sort_to)
        keys = host.recent.since(asked.group.encode(), after)
        if keys is None:
            return self._changed_on_disk(host, first, end, after)
        keys = [key for key in keys if first <= key < end]
        if not keys:
            return []
        self._visit(len(keys))
        return list(zip(keys, host.read(keys), strict=True))

    def _changed_on_disk(self, host: PartitionHost, first: bytes, end: bytes, after: int) -> list[Row] | None:
        changed: list[tuple[bytes, bytes]] = []
        for visits, (key, value) in enumerate(host.scan(first, end, reverse=False), 1):
            if visits > _MOST_VISITS_OF_RANGE:
                return None
            self._visit(1)
            if offset_of(value) > after:
                changed.append((key, value))
        # After the rows, so that no deletion can have been forgotten unseen: see PartitionStore.forget_deletions.
        if host.store.purged_through > after:
            return None
        return [*sorted(changed, key=lambda row: offset_of(row[1]))]

    def _fill_whole(
        self, result: query_pb2.RangeResult, host: PartitionHost, asked: query_pb2.RangeQuery, limit: int
    ) -> None:
        result.whole = True
        first, end = group_range(asked.group, asked.sort_from, asked.sort_to)
        for visits, (key, value) in enumerate(host.scan(first, end, reverse=asked.reverse), 1):
            if visits > _MOST_VISITS_OF_RANGE:
                raise TooLargeError("ranges: too many deletions are remembered in the range: ask for a smaller one")
            self._visit(1)
            if not is_value(value):
                continue
            if len(result.states) == limit:
                result.more = True
                return
            fill_state(result.states.add(), state_key(key), host.place.epoch, value)

    def _visit(self, rows: int) -> None:
        self._visits_left -= rows
        if self._visits_left < 0:
            raise TooLargeError(
                "ranges: the answer would read too many rows: ask for fewer or smaller ranges at a time"
            )


def _fill_changed(result: query_pb2.RangeResult, host: PartitionHost, changed: Sequence[Row], through: int) -> None:
    for key, value in changed:
        if is_value(value):
            fill_state(result.states.add(), state_key(key), host.place.epoch, value)
    _fill_removals(result, host, changed, through)


def _fill_removals(result: query_pb2.RangeResult, host: PartitionHost, changed: Sequence[Row], through: int) -> None:
    current = host.freshness("").current_through
    current.offset = through
    for key, value in changed:
        if not is_value(value):
            removal = result.removals.add(key=state_key(key))
            fill_absence(removal.absence, host.place.epoch, value, current)
