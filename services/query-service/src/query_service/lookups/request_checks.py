"""Checks public requests before anything else looks at them: an error names the field and what to do."""

from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration

from query_service.errors import InvalidRequestError, MalformedKeyError, OversizedBatchError
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2


@dataclass(frozen=True)
class Limits:
    """What a request may ask for."""

    batch_keys: int
    page_size: int
    default_page_size: int
    wait_ms: int


def check_get(request: query.GetStateRequest) -> None:
    """Raises InvalidRequestError when a field is wrong."""
    _check_key(request.key, "key")
    _check_bounds(request.bounds)


def check_batch(request: query.BatchGetStatesRequest, limits: Limits) -> None:
    """Raises InvalidRequestError when a field is wrong."""
    asked = len(request.keys) + len(request.ranges)
    if asked > limits.batch_keys:
        raise OversizedBatchError(f"keys, ranges: {asked} are more than {limits.batch_keys}: ask in several batches")
    for index, each in enumerate(request.keys):
        key = each.key
        if key.sort or key.member or not key.group or "\0" in key.group:
            _check_key(key, f"keys[{index}].key")
        if each.after.offset < -1:
            raise InvalidRequestError(f"keys[{index}].after.offset: {each.after.offset} is below -1")
    for index, asked_range in enumerate(request.ranges):
        _check_range(asked_range, f"ranges[{index}]")
    _check_bounds(request.bounds)
    if request.HasField("max_wait"):
        _check_wait(request.max_wait, limits)


def check_versions(request: query.ListVersionsRequest) -> None:
    """Raises InvalidRequestError when a field is wrong."""
    _check_key(request.key, "key")
    _check_page_size(request.page_size)
    _check_bounds(request.bounds)


def check_scan(request: query.ScanStatesRequest) -> None:
    """Raises InvalidRequestError when a field is wrong."""
    for name in ("group", "sort_from", "sort_to", "sort_prefix"):
        _check_no_nul(getattr(request, name), name)
        if getattr(request, name) and not request.group:
            raise InvalidRequestError(f"{name}: it is a part of a group: name the group, or leave it empty")
    if request.local_only and request.group:
        raise InvalidRequestError("local_only: it reads all groups of an instance: leave group empty")
    if request.bounds.HasField("at_least") and not request.group:
        raise InvalidRequestError("bounds.at_least: it is a position in one partition: name a group, or leave it out")
    if request.sort_to and request.sort_from.encode() > request.sort_to.encode():
        raise InvalidRequestError("sort_to: it is below sort_from: swap them")
    _check_page_size(request.page_size)
    _check_bounds(request.bounds)


def page_size(request: query.ScanStatesRequest | query.ListVersionsRequest, limits: Limits) -> int:
    """Returns how many states a page gets."""
    return min(request.page_size or limits.default_page_size, limits.page_size)


def wait_s(request: query.BatchGetStatesRequest) -> float:
    """Returns `max_wait` in seconds."""
    return request.max_wait.seconds + request.max_wait.nanos / 1e9


def _check_key(key: state_pb2.StateKey, field: str) -> None:
    if not key.group:
        raise MalformedKeyError(f"{field}.group: it is empty: name a group")
    _check_no_nul(key.group, f"{field}.group")
    _check_no_nul(key.sort, f"{field}.sort")
    _check_no_nul(key.member, f"{field}.member")
    if bool(key.sort) != bool(key.member):
        missing = "member" if key.sort else "sort"
        raise MalformedKeyError(f"{field}.{missing}: it is empty: give both sort and member, or neither")


def _check_range(asked: query_pb2.RangeQuery, field: str) -> None:
    if not asked.group:
        raise MalformedKeyError(f"{field}.group: it is empty: name a group")
    for name in ("group", "sort_from", "sort_to"):
        _check_no_nul(getattr(asked, name), f"{field}.{name}")
    if asked.sort_to and asked.sort_from.encode() > asked.sort_to.encode():
        raise InvalidRequestError(f"{field}.sort_to: it is below sort_from: swap them")
    if asked.limit < 0:
        raise InvalidRequestError(f"{field}.limit: {asked.limit} is below 0: 0 takes the default")
    if asked.after.offset < -1:
        raise InvalidRequestError(f"{field}.after.offset: {asked.after.offset} is below -1")


def _check_no_nul(text: str, field: str) -> None:
    if "\0" in text:
        raise MalformedKeyError(f"{field}: it has a NUL character: remove it")


def _check_page_size(size: int) -> None:
    if size < 0:
        raise InvalidRequestError(f"page_size: {size} is below 0: 0 takes the default")


def _check_bounds(bounds: query_pb2.Bounds) -> None:
    if bounds.max_lag_ms < 0:
        raise InvalidRequestError(f"bounds.max_lag_ms: {bounds.max_lag_ms} is below 0")
    if bounds.at_least.offset < -1:
        raise InvalidRequestError(f"bounds.at_least.offset: {bounds.at_least.offset} is below -1")


def _check_wait(wait: Duration, limits: Limits) -> None:
    if wait.seconds < 0 or wait.nanos < 0:
        raise InvalidRequestError("max_wait: it is negative: leave it out to be answered at once")
    if wait.seconds * 1000 + wait.nanos / 1e6 > limits.wait_ms:
        raise InvalidRequestError(f"max_wait: it is above {limits.wait_ms} ms: wait for less, and ask again")
