"""The tokens between two pages, of a scan and of versions: opaque to callers, the same at every replica."""

import base64
import binascii
from hashlib import blake2b
from struct import Struct
from struct import error as StructError  # noqa: N812  the class has a lower-case name
from typing import NamedTuple

from query_service.errors import BadTokenError
from query_service.lookups import ScanQuery, VersionsQuery
from query_service.storage.store_keys import MAX_OFFSET

_SCAN_HEAD = Struct(">c8sH")  # version, digest of the query, bytes of the set of partitions
_SCAN_VERSION = b"2"
_VERSIONS_TOKEN = Struct(">c8sqq")  # version, digest of the query, epoch of the topic, offset to go on before
_VERSIONS_VERSION = b"v"
_FOREIGN = "page_token: it is not a token of this service: pass back next_page_token"


class Cursor(NamedTuple):
    """Where a scan goes on: after a key, and, for a scan of an instance's own partitions, in which of them.

    One key is enough for a whole store: the pages of all partitions are merged by key, so that each partition goes on
    after the same one.
    """

    last_key: bytes
    partitions: frozenset[int] | None = None


def encode_scan(query: ScanQuery, cursor: Cursor) -> str:
    """Returns the token of the next page of a scan."""
    packed = b""
    if cursor.partitions is not None:
        bits = sum(1 << partition for partition in cursor.partitions)
        packed = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
    head = _SCAN_HEAD.pack(_SCAN_VERSION, _scan_digest(query), len(packed))
    return base64.urlsafe_b64encode(head + packed + cursor.last_key).decode()


def decode_scan(query: ScanQuery, token: str) -> Cursor | None:
    """Returns where the scan goes on by a token, or None for the empty token of the first page.

    Raises BadTokenError for a token that this service did not make, or made for other fields.
    """
    if not token:
        return None
    content = _content(token)
    if len(content) < _SCAN_HEAD.size:
        raise BadTokenError(_FOREIGN)
    version, digest, size = _SCAN_HEAD.unpack_from(content)
    key_at = _SCAN_HEAD.size + size
    if version != _SCAN_VERSION or len(content) <= key_at:
        raise BadTokenError(_FOREIGN)
    if digest != _scan_digest(query):
        raise BadTokenError("page_token: it was made for other fields: change only page_size and bounds between pages")
    packed = content[_SCAN_HEAD.size : key_at]
    partitions = frozenset(at * 8 + bit for at, byte in enumerate(packed) for bit in range(8) if byte >> bit & 1)
    return Cursor(content[key_at:], partitions if size else None)


def encode_versions(query: VersionsQuery, epoch: int, before_offset: int) -> str:
    """Returns the token of the page of versions that goes on before an offset."""
    content = _VERSIONS_TOKEN.pack(_VERSIONS_VERSION, _digest(query.store, *query.key), epoch, before_offset)
    return base64.urlsafe_b64encode(content).decode()


def decode_versions(query: VersionsQuery, epoch: int) -> int:
    """Returns the offset before which the page goes on; without a token, one that is above all.

    Raises BadTokenError for a token that this service did not make, or made for another key or topic.
    """
    if not query.page_token:
        return MAX_OFFSET
    try:
        version, digest, token_epoch, before_offset = _VERSIONS_TOKEN.unpack(_content(query.page_token))
    except StructError as error:
        raise BadTokenError(_FOREIGN) from error
    if version != _VERSIONS_VERSION or digest != _digest(query.store, *query.key):
        raise BadTokenError("page_token: it was made for another key or call: keep store and key")
    if token_epoch != epoch:
        raise BadTokenError("page_token: the topic has been made anew since: begin with the first page")
    return int(before_offset)


def _content(token: str) -> bytes:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadTokenError(_FOREIGN) from error


def _scan_digest(query: ScanQuery) -> bytes:
    texts = (query.store, query.group, query.sort_from, query.sort_to, query.sort_prefix)
    return _digest(*texts, str(query.reverse), str(query.local_only))


def _digest(*texts: str) -> bytes:
    return blake2b("\0".join(texts).encode(), digest_size=8).digest()
