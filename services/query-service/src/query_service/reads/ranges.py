"""Reads the ranges of a batch in one partition: the changes since the caller looked, or everything."""

from collections.abc import Sequence
from itertools import chain

from query_service.errors import TooLargeError
from query_service.reads.messages import absence_of, fill_position
from query_service.reads.replica_reads import is_value
from query_service.reads.request_checks import Limits, Room
from query_service.reads.wire import SECOND, epoch_bytes, header_fields, sized, state_bytes
from query_service.storage.progress import Freshness
from query_service.storage.replica import Replica
from query_service.storage.store_keys import group_range, key_parts, offset_of
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2

_MAX_VISITS = 20_000
_MAX_VISITS_OF_RANGE = 10_000
_CHANGES_A_VISIT = 16
"""How many remembered changes can be looked at in the time of one row."""


class RangeReader:
    """Reads the ranges of one batch, as of a freshness that was taken before.

    It reads at most a fixed number of rows in all, so that it never holds the event loop for long: a range that would
    need more fails with TooLargeError. Deletions count only where they must be told.
    """

    def __init__(self, replica: Replica, freshness: Freshness, limits: Limits, room: Room) -> None:
        self._replica = replica
        self._freshness = freshness
        self._epoch = epoch_bytes(freshness.epoch)
        self._limits = limits
        self._room = room
        self._visits_left = _MAX_VISITS

    def read(self, query: query_pb2.RangeQuery) -> bytes | None:
        """Returns the news of a range, as an encoded RangeResult without its index, or None.

        A row that leaves its store by age leaves without a record, so it is missing from the next whole answer only.
        Raises as Replica does.
        """
        self._visit(0)  # once they are used up, no range costs anything
        changed = self._changed(query)
        if changed is None:
            return self._whole(query, None)
        if not changed and not query.whole:
            return None
        removals = [self._removal(key, value) for key, value in changed if not is_value(value)]
        if query.whole or len(changed) > self._limits.rows(query.limit):
            return self._whole(query, removals)
        states = [self._state(key, value) for key, value in changed if is_value(value)]
        return self._encoded(states, query_pb2.RangeResult(removals=removals, removals_complete=True))

    def _changed(self, query: query_pb2.RangeQuery) -> Sequence[tuple[bytes, bytes | None]] | None:
        """Returns the rows of the range that changed since the caller looked, in order; None when they are unknown."""
        if not query.HasField("after") or query.after.epoch != self._freshness.epoch:
            return None
        after = query.after.offset
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        keys = self._replica.changes.changed_after(query.group.encode(), after)
        if keys is None:
            return self._changed_on_disk(first, end, after)
        self._visit(len(keys) // _CHANGES_A_VISIT)
        keys = [key for key in keys if first <= key < end]
        if not keys:
            return []
        self._visit(len(keys))
        return list(zip(keys, self._replica.read(keys), strict=True))

    def _changed_on_disk(self, first: bytes, end: bytes, after: int) -> Sequence[tuple[bytes, bytes]] | None:
        changed: list[tuple[bytes, bytes]] = []
        rows = chain(self._replica.scan(first, end, reverse=False), self._replica.deletions(first, end))
        for visits, (key, value) in enumerate(rows, 1):
            if visits > _MAX_VISITS_OF_RANGE:
                return None
            self._visit(1)
            if offset_of(value) > after:
                changed.append((key, value))
        # After the rows, so that no deletion can have been forgotten unseen: see PartitionStore.purge_deletions.
        if self._replica.store.purged_offset > after:
            return None
        return sorted(changed, key=lambda row: offset_of(row[1]))

    def _whole(self, query: query_pb2.RangeQuery, removals: Sequence[query_pb2.RangeRemoval] | None) -> bytes:
        """Returns all of a range, beside the removals since the caller looked, where they are known."""
        limit = self._limits.rows(query.limit)
        first, end = group_range(query.group, query.sort_from, query.sort_to)
        rest = query_pb2.RangeResult(whole=True, removals=removals, removals_complete=removals is not None)
        states: list[bytes] = []
        for key, value in self._replica.scan(first, end, reverse=query.reverse):
            self._visit(1)
            if not is_value(value):  # it has left by age
                continue
            if len(states) == limit:
                rest.more = True
                break
            states.append(self._state(key, value))
        return self._encoded(states, rest)

    def _encoded(self, states: Sequence[bytes], rest: query_pb2.RangeResult) -> bytes:
        fill_position(rest.position, Position(self._freshness.epoch, self._freshness.applied_offset))
        return b"".join(states) + rest.SerializeToString()

    def _state(self, key: bytes, value: bytes) -> bytes:
        state = state_bytes(key, self._epoch, header_fields(value), value)
        self._room.take(len(state))
        return sized(SECOND, state)

    def _removal(self, key: bytes, value: bytes | None) -> query_pb2.RangeRemoval:
        group, sort, member = key_parts(key)
        removed = state_pb2.StateKey(group=group, sort=sort, member=member)
        return query_pb2.RangeRemoval(key=removed, absence=absence_of(value, self._freshness))

    def _visit(self, rows: int) -> None:
        self._visits_left -= rows
        if self._visits_left < 0:
            raise TooLargeError("ranges: the answer would read too many rows: ask for fewer or smaller ones at a time")
