"""Turns requests into queries, and queries into requests to peers; what begins with `fill` fills an empty message."""

from typing import Any

from query_service import lookups
from query_service.lookups import BatchQuery, Bounds, Encoded, GetQuery, Key, KeyQuery, RangeQuery, ScanQuery
from query_service.storage.progress import Absence, Freshness
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2

_SCAN_FIELDS = tuple(name for name in ScanQuery._fields if name not in ("bounds", "encoded"))


def key_of(message: state_pb2.StateKey) -> Key:
    return Key(message.group, message.sort, message.member)


def position_of(message: state_pb2.Position) -> Position:
    return Position(message.epoch, message.offset)


def fill_position(message: state_pb2.Position, position: Position) -> None:
    """Also sets a position of zeros."""
    message.SetInParent()
    message.epoch, message.offset = position


def fill_freshness(message: query_pb2.Freshness, freshness: Freshness) -> None:
    message.partition, message.lag_records, message.lag_ms, epoch, applied_offset, answered_by = freshness[:6]
    message.answered_by, message.forwarded = answered_by, freshness.forwarded
    position = message.current_through
    position.epoch, position.offset = epoch, applied_offset
    message.keys.extend(freshness.keys)
    message.ranges.extend(freshness.ranges)


def freshness_of(message: query_pb2.Freshness) -> Freshness:
    position = message.current_through
    lag = message.lag_records, message.lag_ms
    known = message.partition, *lag, position.epoch, position.offset, message.answered_by
    return Freshness(*known, forwarded=message.forwarded, keys=tuple(message.keys), ranges=tuple(message.ranges))


def forwarded_freshness(message: query_pb2.Freshness) -> Freshness:
    return freshness_of(message)._replace(forwarded=True)


def fill_absence(message: query_pb2.Absence, absence: Absence) -> None:
    fill_position(message.position, absence.position)
    message.deleted = absence.deleted
    if absence.commit_time is not None:
        message.commit_time.seconds, message.commit_time.nanos = absence.commit_time
    if absence.purged_offset is not None:
        fill_position(message.unchanged_since, Position(absence.position.epoch, absence.purged_offset))


def absence_of(message: query_pb2.Absence) -> Absence:
    commit_time = (message.commit_time.seconds, message.commit_time.nanos) if message.HasField("commit_time") else None
    purged_offset = message.unchanged_since.offset if message.HasField("unchanged_since") else None
    return Absence(position_of(message.position), message.deleted, commit_time, purged_offset)


def get_query(request: api.GetStateRequest) -> GetQuery:
    as_of = (request.as_of.seconds, request.as_of.nanos) if request.HasField("as_of") else None
    return GetQuery(request.store, key_of(request.key), _bounds(request), as_of, Encoded(request))


def batch_query(request: api.BatchGetStatesRequest) -> BatchQuery:
    keys: list[KeyQuery] = []
    for query in request.keys:
        key, after = query.key, query.after
        keys.append((key.group, key.sort, key.member, after.epoch, after.offset, Encoded(query)))
    ranges: list[RangeQuery] = []
    for each in request.ranges:
        sort_from, sort_to, limit, reverse = each.sort_from, each.sort_to, each.limit, each.reverse
        known = position_of(each.after) if each.HasField("after") else None
        ranges.append(RangeQuery(each.group, sort_from, sort_to, limit, reverse, known, each.whole, Encoded(each)))
    wait = request.max_wait
    max_wait_s = -1.0 if wait.seconds < 0 or wait.nanos < 0 else wait.seconds + wait.nanos / 1e9
    return BatchQuery(request.store, keys, ranges, _bounds(request), max_wait_s, Encoded(request))


def scan_query(request: api.ScanStatesRequest) -> ScanQuery:
    fields = {name: getattr(request, name) for name in _SCAN_FIELDS}
    return ScanQuery(**fields, bounds=_bounds(request), encoded=Encoded(request))


def versions_query(request: api.ListVersionsRequest) -> lookups.VersionsQuery:
    store, key, size, token = request.store, key_of(request.key), request.page_size, request.page_token
    return lookups.VersionsQuery(store, key, size, token, _bounds(request), Encoded(request))


def fill_batch_request(request: api.BatchGetStatesRequest, query: BatchQuery) -> None:
    request.store = query.store
    keys: list[Any] = [key_query[5] for key_query in query.keys]
    request.keys.extend(keys)
    request.ranges.extend(message_of(range_query.encoded) for range_query in query.ranges)
    if query.bounds is not None:
        request.bounds.CopyFrom(message_of(query.encoded).bounds)
    if query.max_wait_s > 0:
        request.max_wait.FromNanoseconds(int(query.max_wait_s * 1e9))


def fill_scan_request(request: api.ScanStatesRequest, query: ScanQuery) -> None:
    request.CopyFrom(message_of(query.encoded))
    request.page_size, request.page_token = query.page_size, query.page_token


def message_of(encoded: Encoded | None) -> Any:
    return encoded


def _bounds(request: Any) -> Bounds | None:
    if not request.HasField("bounds"):
        return None
    bounds = request.bounds
    max_lag_ms = bounds.max_lag_ms if bounds.HasField("max_lag_ms") else None
    return Bounds(max_lag_ms, position_of(bounds.at_least) if bounds.HasField("at_least") else None)
