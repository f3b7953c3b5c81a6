"""The tokens between two pages, of a scan and of versions: opaque to callers, the same at every replica."""

import base64
from hashlib import blake2b
from typing import NamedTuple

from google.protobuf.message import DecodeError

from query_service.errors import BadTokenError
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1 import query_service_pb2 as api
from statecast.query.v1.page_token_pb2 import PageToken, ScanPlace, VersionsPlace

_VERSION = 1
_FIXED = (  # the fields that are those of the scan, not of the page; their order is part of the token
    "store", "group", "group_from", "group_to", "sort_from", "sort_to", "sort_prefix", "reverse", "local_only",
)  # fmt: skip
_FOREIGN = "page_token: it is not a token of this service: pass back next_page_token"


class Cursor(NamedTuple):
    """Where a scan goes on: after a key, the same in all partitions, and, `local_only`, in which partitions.

    These are bits of a number: anybody can make a token that names millions.
    """

    last_key: bytes
    partitions: int | None = None


def encode_scan(request: api.ScanStatesRequest, cursor: Cursor) -> str:
    place = ScanPlace(last_key=cursor.last_key)
    if cursor.partitions is not None:
        place.partitions = cursor.partitions.to_bytes(cursor.partitions.bit_length() // 8 + 1, "little")
    return _encoded(PageToken(request=_digest_of_scan(request), scan=place))


def decode_scan(request: api.ScanStatesRequest, token: str) -> Cursor | None:
    """Returns where the scan goes on, or None for the empty token of the first page. Raises BadTokenError."""
    if not token:
        return None
    decoded = _decoded(token)
    place = decoded.scan
    if not place.last_key:
        raise BadTokenError(_FOREIGN)
    if decoded.request != _digest_of_scan(request):
        raise BadTokenError("page_token: it was made for other fields: change only page_size and bounds between pages")
    partitions = int.from_bytes(place.partitions, "little") if place.HasField("partitions") else None
    return Cursor(place.last_key, partitions)


def encode_versions(request: api.ListVersionsRequest, epoch: int, before_offset: int) -> str:
    place = VersionsPlace(epoch=epoch, before_offset=before_offset)
    return _encoded(PageToken(request=_digest_of_key(request), versions=place))


def decode_versions(request: api.ListVersionsRequest, epoch: int) -> int:
    """Returns the offset before which the page goes on; without a token, one above all. Raises BadTokenError."""
    if not request.page_token:
        return MAX_OFFSET
    decoded = _decoded(request.page_token)
    if not decoded.HasField("versions") or decoded.request != _digest_of_key(request):
        raise BadTokenError("page_token: it was made for another key or call: keep store and key")
    if decoded.versions.epoch != epoch:
        raise BadTokenError("page_token: the topic was recreated since: begin with the first page")
    return decoded.versions.before_offset


def _encoded(token: PageToken) -> str:
    token.version = _VERSION
    return base64.urlsafe_b64encode(token.SerializeToString()).decode()


def _decoded(token: str) -> PageToken:
    try:
        decoded = PageToken.FromString(base64.b64decode(token, altchars=b"-_", validate=True))
    except (ValueError, DecodeError) as error:
        raise BadTokenError(_FOREIGN) from error
    if decoded.version > _VERSION:
        raise BadTokenError("page_token: a newer release made it: begin with the first page")
    if not decoded.version:
        raise BadTokenError(_FOREIGN)
    return decoded


def _digest_of_scan(request: api.ScanStatesRequest) -> bytes:
    return _digest(*(getattr(request, name) for name in _FIXED))


def _digest_of_key(request: api.ListVersionsRequest) -> bytes:
    key = request.key
    return _digest(request.store, key.group, key.sort, key.member)


def _digest(*fields: object) -> bytes:
    return blake2b("\0".join(map(str, fields)).encode(), digest_size=8).digest()
