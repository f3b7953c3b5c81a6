"""Seals the page tokens that callers get: those of the query service name a row, which may be hidden from them."""

import hmac
from collections.abc import Sequence
from hashlib import sha256, shake_256
from hmac import compare_digest

from ws_edge.auth.gateway import base64url, base64url_bytes, derived_keys
from ws_edge.errors import MalformedFrameError

PURPOSE = b"statecast ws-edge page token, version 1"
"""Separates the keys from the secrets that gateway and edges share, and from other keys that are derived from them."""

MAC_BYTES = 16


class PageTokens:
    """Encrypts and authenticates tokens, so that nobody else can read or make one. Those of any edge are accepted.

    The MAC of the content is the nonce of its encryption (a synthetic nonce, as in RFC 5297), so none is used twice for
    two contents; the key stream is SHAKE-256 of key and nonce.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        """The first secret seals, all are accepted."""
        self._keys = derived_keys(secrets, PURPOSE)

    def seal(self, token: str) -> str:
        """Returns what the caller is given; nothing for no token."""
        if not token:
            return ""
        mac = _mac(self._keys[0], token.encode())
        return base64url(mac + _encrypted(self._keys[0], mac, token.encode()))

    def open(self, sealed: str) -> str:
        """Returns the token, nothing for none. Raises MalformedFrameError when no edge has sealed it."""
        if not sealed:
            return ""
        try:
            data = base64url_bytes(sealed)
        except ValueError:
            data = b""
        mac, encrypted = data[:MAC_BYTES], data[MAC_BYTES:]
        for key in self._keys:
            content = _encrypted(key, mac, encrypted)
            if compare_digest(mac, _mac(key, content)):
                return content.decode()
        raise MalformedFrameError("page_token is not one of ours: pass back next_page_token, whole")


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, sha256)[:MAC_BYTES]


def _encrypted(key: bytes, nonce: bytes, content: bytes) -> bytes:
    """Encrypts, or decrypts again."""
    stream = shake_256(key + nonce).digest(len(content))
    return bytes(a ^ b for a, b in zip(content, stream, strict=True))
