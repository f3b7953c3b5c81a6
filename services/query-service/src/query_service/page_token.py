"""The token between two pages of a group: opaque to callers, the same at every replica."""

import base64
import binascii
from hashlib import blake2b

from query_service.errors import InvalidRequestError
from statecast.query.v1 import query_service_pb2 as query

_VERSION = b"1"
_DIGEST_SIZE = 8


def encode(request: query.ScanStatesRequest, last_key: bytes) -> str:
    """Returns the token of the page after the row `last_key`."""
    return base64.urlsafe_b64encode(_VERSION + _digest(request) + last_key).decode()


def decode(request: query.ScanStatesRequest) -> bytes | None:
    """Returns the last row of the page before, or None for the first page.

    Raises InvalidRequestError for a token that this service did not make, or made for other fields.
    """
    if not request.page_token:
        return None
    try:
        token = base64.b64decode(request.page_token, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError("page_token: it is not a token of this service: pass back next_page_token") from error
    head = len(_VERSION) + _DIGEST_SIZE
    if not token.startswith(_VERSION) or len(token) <= head:
        raise InvalidRequestError("page_token: it is not a token of this service: pass back next_page_token")
    if token[len(_VERSION) : head] != _digest(request):
        raise InvalidRequestError("page_token: it was made for other fields: keep store, group, sort range and reverse")
    return token[head:]


def _digest(request: query.ScanStatesRequest) -> bytes:
    fields = (request.store, request.group, request.sort_from, request.sort_to, str(request.reverse))
    return blake2b("\0".join(fields).encode(), digest_size=_DIGEST_SIZE).digest()
