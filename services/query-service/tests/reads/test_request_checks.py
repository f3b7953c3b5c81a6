"""Invalid requests are refused with the name of the wrong field."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from query_service.errors import InvalidRequestError
from query_service.reads import request_checks
from query_service.reads.request_checks import Limits
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1.state_pb2 import StateKey

LIMITS = Limits(batch_keys=3, page_size=50, default_page_size=10, wait_ms=1000, answer_bytes=1 << 20)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"key": {}}, r"^key\.group: "),
        ({"key": {"group": "a\0b"}}, r"^key\.group: "),
        ({"key": {"group": "a", "sort": "1"}}, r"^key\.member: "),
        ({"key": {"group": "a", "member": "1"}}, r"^key\.sort: "),
        ({"key": {"group": "a", "sort": "1\0", "member": "m"}}, r"^key\.sort: "),
        ({"key": {"group": "a", "sort": "1", "member": "\0"}}, r"^key\.member: "),
        ({"key": {"group": "a"}, "bounds": {"max_lag_ms": -1}}, r"^bounds\.max_lag_ms: "),
        ({"key": {"group": "a"}, "bounds": {"at_least": {"offset": -2}}}, r"^bounds\.at_least\.offset: "),
    ],
)
def test_a_wrong_get_is_refused(changes: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named):
        check_get(query.GetStateRequest(store="s", **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"keys": [{"key": {"group": "a"}}] * 4}, r"^keys, ranges: 4 are more than 3"),
        ({"keys": [{"key": {"group": "a"}}] * 2, "ranges": [{"group": "a"}] * 2}, r"^keys, ranges: 4 are more than 3"),
        ({"ranges": [{}]}, r"^ranges\[0\]\.group: it is empty"),
        ({"ranges": [{"group": "a", "sort_from": "\0"}]}, r"^ranges\[0\]\.sort_from: "),
        ({"ranges": [{"group": "a", "sort_from": "2", "sort_to": "1"}]}, r"^ranges\[0\]\.sort_to: "),
        ({"ranges": [{"group": "a", "limit": -1}]}, r"^ranges\[0\]\.limit: "),
        ({"ranges": [{"group": "a", "after": {"offset": -2}}]}, r"^ranges\[0\]\.after\.offset: "),
        ({"keys": [{"key": {"group": "a"}}, {}]}, r"^keys\[1\]\.key\.group: "),
        ({"keys": [{"key": {"group": "a", "sort": "1"}}]}, r"^keys\[0\]\.key\.member: "),
        ({"keys": [{"key": {"group": "a"}, "after": {"offset": -2}}]}, r"^keys\[0\]\.after\.offset: "),
        ({"max_wait": {"seconds": -1}}, r"^max_wait: it is negative"),
        ({"max_wait": {"seconds": 2}}, r"^max_wait: it is above 1000 ms"),
    ],
)
def test_a_wrong_batch_is_refused(changes: dict[str, object], named: str) -> None:
    request = query.BatchGetStatesRequest(store="s", **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match=named):
        check_batch(request)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"group": "a\0"}, r"^group: "),
        ({"group": "a", "sort_prefix": "\0"}, r"^sort_prefix: it has a NUL"),
        ({"group": "a", "group_from": "a"}, r"^group_from: group names the only one"),
        ({"group": "a", "group_to": "b"}, r"^group_to: group names the only one"),
        ({"group_from": "\0"}, r"^group_from: it has a NUL"),
        ({"group_to": "\0"}, r"^group_to: it has a NUL"),
        ({"group_from": "b", "group_to": "a"}, r"^group_to: it is below"),
        ({"sort_prefix": "\0"}, r"^sort_prefix: it has a NUL"),
        ({"sort_from": "2", "sort_to": "1"}, r"^sort_to: it is below"),
        ({"group": "a", "local_only": True}, r"^local_only: "),
        ({"bounds": {"at_least": {"offset": 1}}}, r"^bounds\.at_least: "),
        ({"group": "a", "sort_from": "\0"}, r"^sort_from: "),
        ({"group": "a", "sort_to": "\0"}, r"^sort_to: it has a NUL"),
        ({"group": "a", "sort_from": "2", "sort_to": "1"}, r"^sort_to: it is below"),
        ({"group": "a", "page_size": -1}, r"^page_size: "),
    ],
)
def test_a_wrong_scan_is_refused(changes: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named):
        request_checks.check_scan(query.ScanStatesRequest(store="s", **changes))  # type: ignore[arg-type]


def check_get(request: query.GetStateRequest) -> None:
    """Checks a get as it is checked before and while it is read."""
    request_checks.check_bounds(request)
    request_checks.checked_key(request.key)


def check_batch(request: query.BatchGetStatesRequest) -> None:
    """Checks a batch as it is checked before and while it is read."""
    request_checks.check_batch(request, LIMITS)
    for index, key_query in enumerate(request.keys):
        request_checks.check_key_query(key_query, index)


UNKNOWN = b"\xfa\x07\x04more"
"""Field 127, which only a later release knows."""


@pytest.mark.parametrize("kind", [query.GetStateRequest, query.ScanStatesRequest, query.ListVersionsRequest])
def test_a_field_of_a_later_release_is_refused(kind: type[Message]) -> None:
    with pytest.raises(InvalidRequestError, match=rf"^field 127 of {kind.__name__} is of a later release: upgrade"):
        request_checks.check_known(kind.FromString(UNKNOWN))


@pytest.mark.parametrize("field", ["", "ranges", "bounds"])
def test_a_batch_with_a_field_of_a_later_release_is_refused(field: str) -> None:
    request = query.BatchGetStatesRequest(store="s")
    part = {"": request, "ranges": request.ranges.add(group="a"), "bounds": request.bounds}[field]
    part.MergeFromString(UNKNOWN)
    with pytest.raises(InvalidRequestError, match=r"^field 127 of "):
        check_batch(request)


def test_a_scan_with_a_field_of_a_later_release_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"^field 127 of ScanStatesRequest"):
        request_checks.check_scan(query.ScanStatesRequest.FromString(UNKNOWN))


def test_right_requests_pass() -> None:
    check_get(query.GetStateRequest(store="s", key=StateKey(group="a", sort="1", member="m")))
    request_checks.check_batch(query.BatchGetStatesRequest(store="s", max_wait=Duration(seconds=1)), LIMITS)
    request_checks.check_scan(query.ScanStatesRequest(store="s", group="a", sort_from="1", sort_to="1"))


@pytest.mark.parametrize(("page_size", "size"), [(0, 10), (7, 7), (51, 50)])
def test_the_page_size_has_a_default_and_a_maximum(page_size: int, size: int) -> None:
    assert LIMITS.rows(page_size) == size
