"""The token between two pages of versions: opaque to callers, the same at every replica."""

import base64
import binascii
from hashlib import blake2b
from struct import Struct
from struct import error as StructError  # noqa: N812  the class has a lower-case name

from query_service.errors import BadTokenError
from query_service.storage.store_keys import MAX_OFFSET
from statecast.query.v1 import query_service_pb2 as query

_TOKEN = Struct(">c8sqq")  # version, digest of the request, epoch of the topic, offset to go on before
_VERSION = b"v"


def encode(request: query.ListVersionsRequest, epoch: int, before_offset: int) -> str:
    """Returns the token of the page that goes on before an offset."""
    return base64.urlsafe_b64encode(_TOKEN.pack(_VERSION, _digest(request), epoch, before_offset)).decode()


def decode(request: query.ListVersionsRequest, epoch: int) -> int:
    """Returns the offset before which the page goes on; without a token, one that is above all.

    Raises BadTokenError for a token that this service did not make, or made for another key or topic.
    """
    if not request.page_token:
        return MAX_OFFSET
    try:
        raw = base64.b64decode(request.page_token, altchars=b"-_", validate=True)
        version, digest, made_in, before_offset = _TOKEN.unpack(raw)
    except (binascii.Error, ValueError, StructError) as error:
        raise BadTokenError("page_token: it is not a token of this service: pass back next_page_token") from error
    if version != _VERSION or digest != _digest(request):
        raise BadTokenError("page_token: it was made for another key or call: keep store and key")
    if made_in != epoch:
        raise BadTokenError("page_token: the topic has been made anew since: begin with the first page")
    return int(before_offset)


def _digest(request: query.ListVersionsRequest) -> bytes:
    key = request.key
    return blake2b("\0".join((request.store, key.group, key.sort, key.member)).encode(), digest_size=8).digest()
