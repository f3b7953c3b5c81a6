"""The tokens between two pages, of a scan and of versions: opaque to callers, the same at every replica."""

import base64
import struct
from hashlib import blake2b
from typing import Any, NamedTuple

from query_service.errors import BadTokenError
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1 import query_service_pb2 as api

_SCAN_HEAD = struct.Struct(">c8sH")  # version, digest of the query, bytes of the set of partitions
_SCAN_VERSION = b"2"
_VERSIONS_TOKEN = struct.Struct(">c8sqq")  # version, digest of the query, epoch of the topic, offset to go on before
_VERSIONS_VERSION = b"v"
_FIXED = (  # the fields that are those of the scan, not of the page; their order is part of the token
    "store", "group", "group_from", "group_to", "sort_from", "sort_to", "sort_prefix", "reverse", "local_only",
)  # fmt: skip
_FOREIGN = "page_token: it is not a token of this service: pass back next_page_token"


class Cursor(NamedTuple):
    """Where a scan goes on: after a key, the same in all partitions, and, `local_only`, in which partitions."""

    last_key: bytes
    partitions: frozenset[int] | None = None


def encode_scan(request: api.ScanStatesRequest, cursor: Cursor) -> str:
    bits = sum(1 << partition for partition in cursor.partitions or ())
    packed = b"" if cursor.partitions is None else bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    head = _SCAN_HEAD.pack(_SCAN_VERSION, _digest(*(getattr(request, name) for name in _FIXED)), len(packed))
    return base64.urlsafe_b64encode(head + packed + cursor.last_key).decode()


def decode_scan(request: api.ScanStatesRequest, token: str) -> Cursor | None:
    """Returns where the scan goes on, or None for the empty token of the first page. Raises BadTokenError."""
    if not token:
        return None
    (version, digest, size), rest = _decoded(token, _SCAN_HEAD)
    packed, last_key = rest[:size], rest[size:]
    if version != _SCAN_VERSION or not last_key:
        raise BadTokenError(_FOREIGN)
    if digest != _digest(*(getattr(request, name) for name in _FIXED)):
        raise BadTokenError("page_token: it was made for other fields: change only page_size and bounds between pages")
    partitions = frozenset(at * 8 + bit for at, byte in enumerate(packed) for bit in range(8) if byte >> bit & 1)
    return Cursor(last_key, partitions if size else None)


def encode_versions(request: api.ListVersionsRequest, epoch: int, before_offset: int) -> str:
    content = _VERSIONS_TOKEN.pack(_VERSIONS_VERSION, _digest_of_key(request), epoch, before_offset)
    return base64.urlsafe_b64encode(content).decode()


def decode_versions(request: api.ListVersionsRequest, epoch: int) -> int:
    """Returns the offset before which the page goes on; without a token, one above all. Raises BadTokenError."""
    if not request.page_token:
        return MAX_OFFSET
    (version, digest, token_epoch, before_offset), rest = _decoded(request.page_token, _VERSIONS_TOKEN)
    if rest:
        raise BadTokenError(_FOREIGN)
    if version != _VERSIONS_VERSION or digest != _digest_of_key(request):
        raise BadTokenError("page_token: it was made for another key or call: keep store and key")
    if token_epoch != epoch:
        raise BadTokenError("page_token: the topic has been made anew since: begin with the first page")
    return int(before_offset)


def _decoded(token: str, head: struct.Struct) -> tuple[tuple[Any, ...], bytes]:
    try:
        content = base64.b64decode(token, altchars=b"-_", validate=True)
        return head.unpack_from(content), content[head.size :]
    except (ValueError, struct.error) as error:
        raise BadTokenError(_FOREIGN) from error


def _digest_of_key(request: api.ListVersionsRequest) -> bytes:
    key = request.key
    return _digest(request.store, key.group, key.sort, key.member)


def _digest(*fields: object) -> bytes:
    return blake2b("\0".join(map(str, fields)).encode(), digest_size=8).digest()
