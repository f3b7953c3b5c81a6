"""Turns requests into queries, and queries into the requests that peers get.

The small messages are keys, positions, freshness and absences; `responses` has them, too. `request_checks` checks the
queries. A function whose name begins with `fill` fills an empty message.
"""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from query_service import lookups
from query_service.freshness import Absence, Freshness, Time
from query_service.lookups import BatchQuery, Bounds, Encoded, GetQuery, Key, KeyQuery, RangeQuery, ScanQuery
from statecast.position import Position
from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.state.v1 import state_pb2

_SCAN_FIELDS = tuple(name for name in ScanQuery._fields if name != "bounds")


def key_of(message: state_pb2.StateKey) -> Key:
    return Key(message.group, message.sort, message.member)


def position_of(message: state_pb2.Position) -> Position:
    return Position(message.epoch, message.offset)


def time_of(message: Timestamp) -> Time:
    return message.seconds, message.nanos


def fill_key(message: state_pb2.StateKey, key: Key) -> None:
    message.group, sort, member = key
    if member:
        message.sort = sort
        message.member = member


def fill_position(message: state_pb2.Position, position: Position) -> None:
    """Also sets a position of zeros."""
    message.SetInParent()
    message.epoch, message.offset = position


def fill_freshness(message: query_pb2.Freshness, freshness: Freshness) -> None:
    message.partition, message.lag_records, message.lag_ms, epoch, applied_offset, answered_by, forwarded = freshness
    position = message.current_through
    position.epoch = epoch
    position.offset = applied_offset
    message.answered_by = answered_by
    message.forwarded = forwarded


def forwarded_freshness(message: query_pb2.Freshness) -> Freshness:
    """Returns a peer's freshness."""
    position = message.current_through
    lag_records, lag_ms, answered_by = message.lag_records, message.lag_ms, message.answered_by
    return Freshness(
        message.partition, lag_records, lag_ms, position.epoch, position.offset, answered_by, forwarded=True
    )


def fill_absence(message: query_pb2.Absence, absence: Absence) -> None:
    epoch, _ = absence.position
    fill_position(message.position, absence.position)
    message.deleted = absence.deleted
    if absence.commit_time is not None:
        message.commit_time.seconds, message.commit_time.nanos = absence.commit_time
    if absence.purged_offset is not None:
        fill_position(message.unchanged_since, Position(epoch, absence.purged_offset))


def absence_of(message: query_pb2.Absence) -> Absence:
    commit_time = time_of(message.commit_time) if message.HasField("commit_time") else None
    purged_offset = message.unchanged_since.offset if message.HasField("unchanged_since") else None
    return Absence(position_of(message.position), message.deleted, commit_time, purged_offset)


def get_query(request: query_service_pb2.GetStateRequest) -> GetQuery:
    as_of = time_of(request.as_of) if request.HasField("as_of") else None
    return GetQuery(request.store, key_of(request.key), _bounds(request), as_of)


def batch_query(request: query_service_pb2.BatchGetStatesRequest) -> BatchQuery:
    keys = [_key_query(query) for query in request.keys]
    ranges = [_range_query(query) for query in request.ranges]
    wait = request.max_wait
    max_wait_s = -1.0 if wait.seconds < 0 or wait.nanos < 0 else wait.seconds + wait.nanos / 1e9
    return BatchQuery(request.store, keys, ranges, _bounds(request), max_wait_s)


def scan_query(request: query_service_pb2.ScanStatesRequest) -> ScanQuery:
    return ScanQuery(**{name: getattr(request, name) for name in _SCAN_FIELDS}, bounds=_bounds(request))


def versions_query(request: query_service_pb2.ListVersionsRequest) -> lookups.VersionsQuery:
    key, bounds = key_of(request.key), _bounds(request)
    return lookups.VersionsQuery(request.store, key, request.page_size, request.page_token, bounds)


def fill_get_request(request: query_service_pb2.GetStateRequest, query: GetQuery) -> None:
    request.store = query.store
    fill_key(request.key, query.key)
    _fill_bounds(request, query.bounds)
    if query.as_of is not None:
        request.as_of.seconds, request.as_of.nanos = query.as_of


def fill_batch_request(request: query_service_pb2.BatchGetStatesRequest, query: BatchQuery) -> None:
    request.store = query.store
    encoded: list[Any] = [key_query[5] for key_query in query.keys]
    request.keys.extend(encoded)
    for range_query in query.ranges:
        fields = range_query._asdict()
        after = fields.pop("after")
        range_message = request.ranges.add(**fields)
        if after is not None:
            fill_position(range_message.after, after)
    _fill_bounds(request, query.bounds)
    if query.max_wait_s > 0:
        request.max_wait.FromNanoseconds(int(query.max_wait_s * 1e9))


def fill_scan_request(request: query_service_pb2.ScanStatesRequest, query: ScanQuery) -> None:
    for name in _SCAN_FIELDS:
        setattr(request, name, getattr(query, name))
    _fill_bounds(request, query.bounds)


def fill_versions_request(request: query_service_pb2.ListVersionsRequest, query: lookups.VersionsQuery) -> None:
    request.store, request.page_size, request.page_token = query.store, query.page_size, query.page_token
    fill_key(request.key, query.key)
    _fill_bounds(request, query.bounds)


def _key_query(message: query_pb2.KeyQuery) -> KeyQuery:
    key, after = message.key, message.after
    return key.group, key.sort, key.member, after.epoch, after.offset, Encoded(message)


def _range_query(query: query_pb2.RangeQuery) -> RangeQuery:
    after = position_of(query.after) if query.HasField("after") else None
    return RangeQuery(query.group, query.sort_from, query.sort_to, query.limit, query.reverse, after, query.whole)


def _bounds(request: Any) -> Bounds | None:
    if not request.HasField("bounds"):
        return None
    bounds = request.bounds
    max_lag_ms = bounds.max_lag_ms if bounds.HasField("max_lag_ms") else None
    return Bounds(max_lag_ms, position_of(bounds.at_least) if bounds.HasField("at_least") else None)


def _fill_bounds(request: Any, bounds: Bounds | None) -> None:
    if bounds is None:
        return
    if bounds.max_lag_ms is not None:
        request.bounds.max_lag_ms = bounds.max_lag_ms
    if bounds.at_least is not None:
        fill_position(request.bounds.at_least, bounds.at_least)
