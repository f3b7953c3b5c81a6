"""Checks requests first of all: an InvalidRequestError names a field that is wrong, and the remedy."""

from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from query_service.errors import InvalidRequestError, MalformedKeyError, OversizedBatchError, TooLargeError
from query_service.storage.store_keys import row_key
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2


@dataclass(slots=True, eq=False)
class Room:
    """How many bytes of values a batch may still read; all of its parts share it."""

    left: int

    def take(self, size: int) -> None:
        """Raises TooLargeError when there is no room for so many bytes."""
        self.left -= size
        if self.left < 0:
            raise TooLargeError


class Limits(NamedTuple):
    """The most that a request may ask for."""

    batch_keys: int
    page_size: int
    default_page_size: int
    wait_ms: int
    answer_bytes: int

    def room(self) -> Room:
        """Returns the room for the answer to a batch."""
        return Room(self.answer_bytes)

    def rows(self, asked: int) -> int:
        """Returns how many rows a page or range gets that asks for so many, 0 for the default."""
        return min(asked or self.default_page_size, self.page_size)


def checked_key(key: state_pb2.StateKey) -> bytes:
    """Returns the key of a get as a store has it; the usual one, a group alone, costs no call."""
    group, sort, member = key.group, key.sort, key.member
    if sort or member or not group or "\0" in group:
        _check_key(key, "key")
        return row_key(group, sort, member)
    return group.encode()


def check_batch(request: api.BatchGetStatesRequest, limits: Limits) -> None:
    """Checks all but the keys, which `check_key_query` checks one by one where they are read."""
    check_known(request)
    size = len(request.keys) + len(request.ranges)
    if size > limits.batch_keys:
        raise OversizedBatchError(f"keys, ranges: {size} are more than {limits.batch_keys}: ask in several batches")
    for index, query in enumerate(request.ranges):
        check_known(query)
        _check_range_query(query, f"ranges[{index}].")
    check_bounds(request)
    wait = request.max_wait
    if wait.seconds < 0 or wait.nanos < 0:
        raise InvalidRequestError("max_wait: it is negative: leave it out to be answered at once")
    if wait.seconds * 1000 + wait.nanos / 1e6 > limits.wait_ms:
        raise InvalidRequestError(f"max_wait: it is above {limits.wait_ms} ms: wait for less, and ask again")


def check_key_query(query: query_pb2.KeyQuery, index: int) -> None:
    _check_key(query.key, f"keys[{index}].key")
    _check_offset(query.after.offset, f"keys[{index}].after")


def check_versions(request: api.ListVersionsRequest) -> None:
    check_known(request)
    _check_key(request.key, "key")
    _check_not_negative(request.page_size, "page_size")
    check_bounds(request)


def check_known(request: Message) -> None:
    """Refuses fields of a later release: an answer without them would be another one than was asked for."""
    unknown = UnknownFieldSet(request)
    if len(unknown):
        problem = f"field {unknown[0].field_number} of {request.DESCRIPTOR.name} is of a later release"
        raise InvalidRequestError(f"{problem}: upgrade the query service first")


def check_scan(request: api.ScanStatesRequest) -> None:
    check_known(request)
    for name in ("group_from", "group_to"):
        if getattr(request, name) and request.group:
            raise InvalidRequestError(f"{name}: group names the only one: leave one of the two empty")
    _check_range(request, "")
    for name in ("group_from", "group_to", "sort_prefix"):
        _check_no_nul(getattr(request, name), name)
    if request.group_to and request.group_from.encode() > request.group_to.encode():
        raise InvalidRequestError("group_to: it is below group_from: swap them")
    if request.local_only and request.group:
        raise InvalidRequestError("local_only: it reads all groups of an instance: leave group empty")
    if request.bounds.HasField("at_least") and not request.group:
        raise InvalidRequestError("bounds.at_least: it is a position in one partition: name a group, or leave it out")
    _check_not_negative(request.page_size, "page_size")
    check_bounds(request)


def is_usual(group: str, sort: str, member: str) -> bool:
    """Returns whether they are a key, so that no field's name need be put together to check them."""
    if not group or "\0" in group:
        return False
    return bool(sort and member and "\0" not in sort and "\0" not in member) if sort or member else True


def _check_key(key: state_pb2.StateKey, field: str) -> None:
    if is_usual(key.group, key.sort, key.member):
        return
    if not key.group:
        raise MalformedKeyError(f"{field}.group: it is empty: name a group")
    for name in ("group", "sort", "member"):
        _check_no_nul(getattr(key, name), f"{field}.{name}")
    missing = "member" if key.sort else "sort"
    raise MalformedKeyError(f"{field}.{missing}: it is empty: give both sort and member, or neither")


def _check_range_query(query: query_pb2.RangeQuery, prefix: str) -> None:
    if not query.group:
        raise MalformedKeyError(f"{prefix}group: it is empty: name a group")
    _check_range(query, prefix)
    _check_not_negative(query.limit, f"{prefix}limit")
    _check_offset(query.after.offset, f"{prefix}after")


def _check_range(query: api.ScanStatesRequest | query_pb2.RangeQuery, prefix: str) -> None:
    for name in ("group", "sort_from", "sort_to"):
        _check_no_nul(getattr(query, name), prefix + name)
    if query.sort_to and query.sort_from.encode() > query.sort_to.encode():
        raise InvalidRequestError(f"{prefix}sort_to: it is below sort_from: swap them")


def _check_no_nul(text: str, field: str) -> None:
    if "\0" in text:
        raise MalformedKeyError(f"{field}: it has a NUL character: remove it")


def _check_not_negative(number: int, field: str) -> None:
    if number < 0:
        raise InvalidRequestError(f"{field}: {number} is below 0: 0 takes the default")


def check_bounds(
    request: api.GetStateRequest | api.BatchGetStatesRequest | api.ScanStatesRequest | api.ListVersionsRequest,
) -> None:
    if not request.HasField("bounds"):
        return
    bounds = request.bounds
    check_known(bounds)
    if bounds.max_lag_ms < 0:
        raise InvalidRequestError(f"bounds.max_lag_ms: {bounds.max_lag_ms} is below 0")
    _check_offset(bounds.at_least.offset, "bounds.at_least")


def _check_offset(offset: int, field: str) -> None:
    if offset < -1:
        raise InvalidRequestError(f"{field}.offset: {offset} is below -1")
