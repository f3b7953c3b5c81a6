"""The token between two pages of a scan: opaque to callers, the same at every replica."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from query_service.errors import BadTokenError
from statecast.query.v1 import query_service_pb2 as query

_HEAD = Struct(">c8sH")  # version, digest of the request, bytes of the set of partitions
_VERSION = b"2"
_DIGEST_SIZE = 8
_FOREIGN = "page_token: it is not a token of this service: pass back next_page_token"


@dataclass(frozen=True)
class Cursor:
    """Where a scan goes on: after a key, and, for a scan of an instance's own partitions, in which of them.

    One key is enough for a whole store: the pages of all partitions are merged by key, so that each partition goes on
    after the same one.
    """

    last_key: bytes
    partitions: frozenset[int] | None = None


def encode(request: query.ScanStatesRequest, cursor: Cursor) -> str:
    """Returns the token of the next page."""
    partitions = b"" if cursor.partitions is None else _packed(cursor.partitions)
    head = _HEAD.pack(_VERSION, _digest(request), len(partitions))
    return base64.urlsafe_b64encode(head + partitions + cursor.last_key).decode()


def decode(request: query.ScanStatesRequest, token: str) -> Cursor | None:
    """Returns where the scan of the request goes on by a token, or None for the empty token of the first page.

    Raises BadTokenError for a token that this service did not make, or made for other fields.
    """
    if not token:
        return None
    try:
        content = base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadTokenError(_FOREIGN) from error
    if len(content) < _HEAD.size:
        raise BadTokenError(_FOREIGN)
    version, digest, size = _HEAD.unpack_from(content)
    key_at = _HEAD.size + size
    if version != _VERSION or len(content) <= key_at:
        raise BadTokenError(_FOREIGN)
    if digest != _digest(request):
        raise BadTokenError("page_token: it was made for other fields: change only page_size and bounds between pages")
    return Cursor(content[key_at:], _unpacked(content[_HEAD.size : key_at]) if size else None)


def _packed(partitions: Iterable[int]) -> bytes:
    bits = sum(1 << partition for partition in partitions)
    return bits.to_bytes(bits.bit_length() // 8 + 1, "little")


def _unpacked(packed: bytes) -> frozenset[int]:
    return frozenset(place * 8 + bit for place, byte in enumerate(packed) for bit in range(8) if byte >> bit & 1)


def _digest(request: query.ScanStatesRequest) -> bytes:
    texts = (request.store, request.group, request.sort_from, request.sort_to, request.sort_prefix)
    fields = (*texts, str(request.reverse), str(request.local_only))
    return blake2b("\0".join(fields).encode(), digest_size=_DIGEST_SIZE).digest()
