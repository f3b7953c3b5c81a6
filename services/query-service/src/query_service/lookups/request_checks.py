"""Checks public requests first of all: an InvalidRequestError names a field that is wrong and says what to do."""

from typing import NamedTuple

from query_service.errors import InvalidRequestError, MalformedKeyError, OversizedBatchError
from query_service.lookups import BatchQuery, Bounds, GetQuery, Key, RangeQuery, ScanQuery, VersionsQuery


class Limits(NamedTuple):
    """What a request may ask for."""

    batch_keys: int
    page_size: int
    default_page_size: int
    wait_ms: int

    def rows(self, asked: int) -> int:
        """Returns how many rows a page or range gets that asks for so many, 0 for the default."""
        return min(asked or self.default_page_size, self.page_size)


def check_get(query: GetQuery) -> None:
    _check_key(query.key, "key")
    _check_bounds(query.bounds)


def check_batch(query: BatchQuery, limits: Limits) -> None:
    size = len(query.keys) + len(query.ranges)
    if size > limits.batch_keys:
        raise OversizedBatchError(f"keys, ranges: {size} are more than {limits.batch_keys}: ask in several batches")
    for index, (group, sort, member, _, after_offset, _) in enumerate(query.keys):
        if sort or member or not group or "\0" in group:
            _check_key(Key(group, sort, member), f"keys[{index}].key")
        if after_offset < -1:  # asked here, too, so that the usual key pays for no field's name
            _check_offset(after_offset, f"keys[{index}].after")
    for index, range_query in enumerate(query.ranges):
        prefix = f"ranges[{index}]."
        if not range_query.group:
            raise MalformedKeyError(f"{prefix}group: it is empty: name a group")
        _check_range(range_query, prefix)
        _check_not_negative(range_query.limit, f"{prefix}limit")
        if range_query.after is not None:
            _check_offset(range_query.after.offset, f"{prefix}after")
    _check_bounds(query.bounds)
    if query.max_wait_s < 0:
        raise InvalidRequestError("max_wait: it is negative: leave it out to be answered at once")
    if query.max_wait_s * 1000 > limits.wait_ms:
        raise InvalidRequestError(f"max_wait: it is above {limits.wait_ms} ms: wait for less, and ask again")


def check_versions(query: VersionsQuery) -> None:
    _check_key(query.key, "key")
    _check_not_negative(query.page_size, "page_size")
    _check_bounds(query.bounds)


def check_scan(query: ScanQuery) -> None:
    for name in ("group_from", "group_to"):
        if getattr(query, name) and query.group:
            raise InvalidRequestError(f"{name}: group names the only one: leave one of the two empty")
    _check_range(query, "")
    for name in ("group_from", "group_to", "sort_prefix"):
        _check_no_nul(getattr(query, name), name)
    if query.group_to and query.group_from.encode() > query.group_to.encode():
        raise InvalidRequestError("group_to: it is below group_from: swap them")
    if query.local_only and query.group:
        raise InvalidRequestError("local_only: it reads all groups of an instance: leave group empty")
    if query.bounds is not None and query.bounds.at_least is not None and not query.group:
        raise InvalidRequestError("bounds.at_least: it is a position in one partition: name a group, or leave it out")
    _check_not_negative(query.page_size, "page_size")
    _check_bounds(query.bounds)


def _check_key(key: Key, field: str) -> None:
    if key.group and not key.sort and not key.member and "\0" not in key.group:
        return  # the usual key, for which no field's name is put together
    if not key.group:
        raise MalformedKeyError(f"{field}.group: it is empty: name a group")
    for name, text in zip(Key._fields, key, strict=True):
        _check_no_nul(text, f"{field}.{name}")
    if bool(key.sort) != bool(key.member):
        missing = "member" if key.sort else "sort"
        raise MalformedKeyError(f"{field}.{missing}: it is empty: give both sort and member, or neither")


def _check_range(query: ScanQuery | RangeQuery, prefix: str) -> None:
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


def _check_bounds(bounds: Bounds | None) -> None:
    if bounds is None:
        return
    if bounds.max_lag_ms is not None and bounds.max_lag_ms < 0:
        raise InvalidRequestError(f"bounds.max_lag_ms: {bounds.max_lag_ms} is below 0")
    if bounds.at_least is not None:
        _check_offset(bounds.at_least.offset, "bounds.at_least")


def _check_offset(offset: int, field: str) -> None:
    if offset < -1:
        raise InvalidRequestError(f"{field}.offset: {offset} is below -1")
