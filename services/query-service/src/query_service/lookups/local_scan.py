"""Reads a page of one partition."""

from query_service.errors import BadTokenError
from query_service.lookups import page_token
from query_service.lookups.answers import fill_state, is_value, state_key
from query_service.lookups.page_token import Cursor
from query_service.lookups.scan_range import key_range
from query_service.storage.partition_host import PartitionHost
from statecast.query.v1 import query_service_pb2 as query

_VISITS_PER_STATE = 10
PAGE_BYTES = 1 << 20


def fill_page(
    answer: query.ScanStatesResponse,
    request: query.ScanStatesRequest,
    host: PartitionHost,
    last_key: bytes | None,
    size: int,
) -> None:
    """Adds at most `size` states after `last_key`, and the token of the next page when there are more rows.

    A page also ends at 1 MiB, and after ten remembered deletions per state: it never holds the event loop for long, so
    a page may be short, or even empty, and still have a next one. Raises NotServedError when the store has moved away.
    """
    first, end = _rest_of_range(request, last_key)
    used = 0
    for visits, (key, value) in enumerate(host.scan(first, end, reverse=request.reverse)):
        if len(answer.states) == size or used >= PAGE_BYTES or visits == size * _VISITS_PER_STATE:
            answer.next_page_token = page_token.encode(request, Cursor(last_key or b""))
            return
        last_key = key
        if is_value(value):
            used += len(value)
            fill_state(answer.states.add(), state_key(key), host.place.epoch, value)


def _rest_of_range(request: query.ScanStatesRequest, last_key: bytes | None) -> tuple[bytes, bytes]:
    first, end = key_range(request)
    if last_key is None:
        return first, end
    if not first <= last_key < end:
        raise BadTokenError("page_token: it names a row outside the range: pass back next_page_token")
    return (first, last_key) if request.reverse else (last_key + b"\0", end)
