"""Which keys a scan reads: those of a group, of a part of it, or of all groups."""

from query_service.storage.store_keys import group_range
from statecast.query.v1 import query_service_pb2 as query

_FIRST_ROW = b"\1"  # what begins with NUL is the store's own
_AFTER_ROWS = b"\xff"  # no UTF-8 text begins with it


def key_range(request: query.ScanStatesRequest) -> tuple[bytes, bytes]:
    """Returns the first key of the scan and the key to stop before; the range is empty when that is not above it."""
    if not request.group:
        return _FIRST_ROW, _AFTER_ROWS
    first, end = group_range(request.group, request.sort_from, request.sort_to)
    if not request.sort_prefix:
        return first, end
    prefix = f"{request.group}\0{request.sort_prefix}".encode()
    return max(first, prefix), min(end, _after_all_with(prefix))


def _after_all_with(prefix: bytes) -> bytes:
    return prefix[:-1] + bytes((prefix[-1] + 1,))  # the last byte of UTF-8 is never 255
