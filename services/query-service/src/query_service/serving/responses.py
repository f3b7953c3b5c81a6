"""Turns results into responses. A stored payload is never parsed; what a peer has encoded is passed on as it came."""

from collections.abc import Sequence
from typing import Any

from query_service import lookups
from query_service.errors import LookupFailedError
from query_service.lookups import Encoded, GetQuery, GetResult, PageResult, RangeResult, Row, VersionsResult
from query_service.serving.grpc_status import fill_key_error
from query_service.serving.messages import fill_absence, fill_freshness, fill_position, message_of
from query_service.storage.progress import Absence
from query_service.storage.store_keys import DELETED, HEADER, HEADER_SIZE, UNTIMED, key_parts
from statecast.position import Position
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_unpack = HEADER.unpack_from


def fill_get_response(response: api.GetStateResponse, query: GetQuery, result: GetResult) -> api.GetStateResponse:
    fill_freshness(response.freshness, result.freshness)
    value = result.value
    if isinstance(value, bytes):
        fill_state(response.state, *query.key, result.freshness.epoch, value)
    else:
        response.state.CopyFrom(message_of(value))
    return response


def fill_batch_response(
    response: api.BatchGetStatesResponse, query: lookups.BatchQuery, result: lookups.BatchResult
) -> api.BatchGetStatesResponse:
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
    return response


def fill_scan_response(response: api.ScanStatesResponse, result: PageResult) -> api.ScanStatesResponse:
    _fill_rows(response.states, result.rows)
    response.next_page_token = result.next_page_token
    if result.freshness is not None:
        fill_freshness(response.freshness, result.freshness)
    for freshness in result.shards:
        fill_freshness(response.shards.add(), freshness)
    return response


def fill_versions_response(response: api.ListVersionsResponse, result: VersionsResult) -> api.ListVersionsResponse:
    for value in result.values:
        version = response.versions.add()
        if not isinstance(value, bytes):
            version.CopyFrom(message_of(value))
            continue
        _, _, offset, seconds, nanos, flags = _unpack(value)
        fill_position(version.position, Position(result.freshness.epoch, offset))
        if not flags & UNTIMED:
            version.commit_time.seconds, version.commit_time.nanos = seconds, nanos
        version.deleted = bool(flags & DELETED)
        version.payload = value[HEADER_SIZE:]
    response.next_page_token = result.next_page_token
    fill_freshness(response.freshness, result.freshness)
    return response


def _fill_rows(states: Any, rows: Sequence[Row]) -> None:
    for key, epoch, value, _ in rows:
        if isinstance(value, bytes):
            fill_state(states.add(), *key_parts(key), epoch, value)
        else:
            states.append(message_of(value))


def fill_range(message: query_pb2.RangeResult, index: int, result: RangeResult | LookupFailedError | Encoded) -> None:
    if isinstance(result, RangeResult):
        fill_position(message.position, result.position)
        message.whole, message.more = result.whole, result.more
        message.removals_complete = result.removals_complete
        _fill_rows(message.states, result.rows)
        for key, absence in result.removals:
            removal = message.removals.add()
            removal.key.group, removal.key.sort, removal.key.member = key_parts(key)
            fill_absence(removal.absence, absence)
    elif isinstance(result, LookupFailedError):
        fill_key_error(message.error, result)
    else:
        message.CopyFrom(message_of(result))
    message.index = index


def fill_state(state: query_pb2.State, group: str, sort: str, member: str, epoch: int, value: bytes) -> None:
    """Fills in a stored value. The hottest code of the service: it calls nothing that it can do itself."""
    _, _, offset, seconds, nanos, flags = _unpack(value)
    key = state.key
    key.group = group
    if member:
        key.sort, key.member = sort, member
    position = state.position
    position.epoch, position.offset = epoch, offset
    if not flags & UNTIMED:
        commit_time = state.commit_time
        commit_time.seconds, commit_time.nanos = seconds, nanos
    state.payload = value[HEADER_SIZE:]
