"""Turns results into responses, and the responses of peers into results.

A function whose name begins with `fill` fills an empty message. A stored payload is never parsed, and what a peer has
encoded is passed on as it came.
"""

from collections.abc import Sequence
from typing import Any

from query_service import lookups
from query_service.errors import LookupFailedError
from query_service.freshness import Absence
from query_service.lookups import Encoded, Key, RangeResult, Row
from query_service.serving.grpc_status import fill_key_error
from query_service.serving.messages import fill_absence, fill_freshness, fill_key, fill_position, forwarded_freshness
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE, UNTIMED, key_parts, row_key
from statecast.position import Position
from statecast.query.v1 import query_pb2, query_service_pb2

_unpack = HEADER.unpack_from


def fill_get_response(
    response: query_service_pb2.GetStateResponse, query: lookups.GetQuery, result: lookups.GetResult
) -> None:
    fill_freshness(response.freshness, result.freshness)
    value = result.value
    if isinstance(value, bytes):
        fill_state(response.state, *query.key, result.epoch, value)
    else:
        response.state.CopyFrom(_message(value))


def fill_batch_response(
    response: query_service_pb2.BatchGetStatesResponse, query: lookups.BatchQuery, result: lookups.BatchResult
) -> None:
    keys = query.keys
    add = response.results.add
    encoded: list[Any] = []
    for index, epoch, value in result.keys:
        if isinstance(value, bytes):
            message = add()
            message.index = index
            group, sort, member, _, _, _ = keys[index]
            fill_state(message.state, group, sort, member, epoch, value)
        elif isinstance(value, Absence):
            fill_absence(add(index=index).absence, value)
        elif isinstance(value, LookupFailedError):
            fill_key_error(add(index=index).error, value)
        else:
            encoded.append(value)
            encoded[-1].index = index
    response.results.extend(encoded)
    for index, range_result in result.ranges:
        fill_range(response.ranges.add(), index, range_result)
    for freshness in result.freshness:
        fill_freshness(response.freshness.add(), freshness)


def fill_scan_response(response: query_service_pb2.ScanStatesResponse, result: lookups.PageResult) -> None:
    _fill_rows(response.states, result.rows)
    response.next_page_token = result.next_page_token
    if result.freshness is not None:
        fill_freshness(response.freshness, result.freshness)
    for freshness in result.shards:
        fill_freshness(response.shards.add(), freshness)


def fill_versions_response(response: query_service_pb2.ListVersionsResponse, result: lookups.VersionsResult) -> None:
    for value in result.values:
        _fill_version(response.versions.add(), result.epoch, value)
    response.next_page_token = result.next_page_token
    fill_freshness(response.freshness, result.freshness)


def get_result(response: query_service_pb2.GetStateResponse) -> lookups.GetResult:
    return lookups.GetResult(0, Encoded(response.state), forwarded_freshness(response.freshness))


def batch_result(response: query_service_pb2.BatchGetStatesResponse) -> lookups.BatchResult:
    return lookups.BatchResult(
        [(result.index, 0, Encoded(result)) for result in response.results],
        [(result.index, Encoded(result)) for result in response.ranges],
        [forwarded_freshness(freshness) for freshness in response.freshness],
    )


def scan_result(response: query_service_pb2.ScanStatesResponse) -> lookups.PageResult:
    rows = [
        Row(row_key(state.key.group, state.key.sort, state.key.member), 0, Encoded(state), len(state.payload))
        for state in response.states
    ]
    shards = [forwarded_freshness(freshness) for freshness in response.shards]
    return lookups.PageResult(rows, response.next_page_token, forwarded_freshness(response.freshness), shards)


def versions_result(response: query_service_pb2.ListVersionsResponse) -> lookups.VersionsResult:
    values = [Encoded(version) for version in response.versions]
    return lookups.VersionsResult(0, values, response.next_page_token, forwarded_freshness(response.freshness))


def _fill_rows(states: Any, rows: Sequence[Row]) -> None:
    for key, epoch, value, _ in rows:
        if isinstance(value, bytes):
            fill_state(states.add(), *key_parts(key), epoch, value)
        else:
            states.append(_message(value))


def fill_range(message: query_pb2.RangeResult, index: int, result: RangeResult | LookupFailedError | Encoded) -> None:
    if isinstance(result, RangeResult):
        fill_position(message.position, result.position)
        message.whole, message.more = result.whole, result.more
        message.removals_complete = result.removals_complete
        _fill_rows(message.states, result.rows)
        for key, absence in result.removals:
            removal = message.removals.add()
            fill_key(removal.key, Key(*key_parts(key)))
            fill_absence(removal.absence, absence)
    elif isinstance(result, LookupFailedError):
        fill_key_error(message.error, result)
    else:
        message.CopyFrom(_message(result))
    message.index = index


def fill_state(state: query_pb2.State, group: str, sort: str, member: str, epoch: int, value: bytes) -> None:
    """Fills in a stored value. The hottest code of the service: it calls nothing that it can do itself."""
    _, _, offset, seconds, nanos, flags = _unpack(value)
    key = state.key
    key.group = group
    if member:
        key.sort = sort
        key.member = member
    position = state.position
    position.epoch = epoch
    position.offset = offset
    if not flags & UNTIMED:
        commit_time = state.commit_time
        commit_time.seconds = seconds
        commit_time.nanos = nanos
    state.payload = value[HEADER_SIZE:]


def _fill_version(version: query_pb2.Version, epoch: int, value: bytes | Encoded) -> None:
    if not isinstance(value, bytes):
        version.CopyFrom(_message(value))
        return
    _, _, offset, seconds, nanos, flags = _unpack(value)
    fill_position(version.position, Position(epoch, offset))
    if not flags & UNTIMED:
        version.commit_time.seconds, version.commit_time.nanos = seconds, nanos
    version.deleted = bool(flags & DELETED)
    version.payload = value[HEADER_SIZE:]


def _message(encoded: Encoded) -> Any:
    return encoded
