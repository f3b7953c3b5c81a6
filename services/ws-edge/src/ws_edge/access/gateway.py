"""What the gateway says about a request or a handshake, and why it is believed."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from ws_edge.authorization import STAFF_GROUP, Consumer
from ws_edge.errors import GatewayRequiredError

SECRET = b"x-gateway-secret"
CLAIMS = b"x-gateway-claims"
CUSTOM_ID = b"x-consumer-custom-id"
USERNAME = b"x-consumer-username"
GROUPS = b"x-consumer-groups"
IDENTITY_HEADERS = frozenset({SECRET, CLAIMS, CUSTOM_ID, USERNAME, GROUPS})
FORWARDED_FOR = b"x-forwarded-for"
NO_CLAIMS = "none"
"""What the gateway sends as claims for a credential that is no token."""

LATEST = 253_402_300_799.0
"""The last second of the year 9999, beyond which contract and JSON know no time."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The times of what a consumer has shown, in seconds since 1970; None where it names no such time."""

    expires_at: float | None = None
    issued_at: float | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the other end: the consumer, what it has shown, and the address that it comes from."""

    consumer: Consumer
    credential: Credential = Credential()
    address: str = ""


class Gateway:
    """Reads what the gateway says, and believes nobody else."""

    def __init__(self, secrets: Sequence[str], certified: bool = False) -> None:
        """Any of `secrets` is a proof. `certified` says that TLS lets in nobody but the gateway, which is proof too."""
        self._secrets = [secret.encode() for secret in secrets]
        self._certified = certified

    def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Reads the caller from an ASGI scope.

        Raises GatewayRequiredError when the proof is not there or wrong, when a header of the gateway stands there
        twice or cannot be read, or when neither a customer nor staff is named.
        """
        known = self._proven(scope)
        return Caller(_consumer(known), _credential(_text(known, CLAIMS)), _address(scope))

    def stranger_address(self, scope: Mapping[str, Any]) -> str:
        """The address of somebody whom the gateway let pass unknown. Raises GatewayRequiredError as `caller` does."""
        self._proven(scope)
        return _address(scope)

    def _proven(self, scope: Mapping[str, Any]) -> dict[bytes, bytes]:
        known = _identity_headers(scope)
        shown = known.get(SECRET, b"")
        if not self._certified and not any(compare_digest(shown, secret) for secret in self._secrets):
            raise GatewayRequiredError("this address is for the gateway alone: connect through the gateway")
        return known


def _identity_headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    known: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in IDENTITY_HEADERS:
            if name in known:
                raise GatewayRequiredError(f"the header {name.decode()} was sent twice")
            known[name] = value
    return known


def _consumer(known: Mapping[bytes, bytes]) -> Consumer:
    groups = {group.strip() for group in _text(known, GROUPS).split(",")}
    consumer = Consumer(_text(known, CUSTOM_ID), _text(known, USERNAME), STAFF_GROUP in groups)
    if not consumer.id and not consumer.staff:
        raise GatewayRequiredError("the gateway named no consumer: sign in, and see that the consumer has a custom_id")
    return consumer


def _credential(claims: str) -> Credential:
    """The times in the middle part of a JSON Web Token; none at all for other credentials."""
    if claims in ("", NO_CLAIMS):
        return Credential()
    try:
        known = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    except (ValueError, RecursionError) as error:
        raise GatewayRequiredError(f"the header {CLAIMS.decode()} does not hold a token's claims: {error}") from error
    if not isinstance(known, dict):
        raise GatewayRequiredError(f"the header {CLAIMS.decode()} does not hold a JSON object")
    return Credential(_time(known, "exp"), _time(known, "iat"))


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise GatewayRequiredError(f"the token's claim {name} is no time: sign in with another token")
    return float(min(value, LATEST))


def _address(scope: Mapping[str, Any]) -> str:
    """The last address in X-Forwarded-For: the gateway has put it there; those before it are hearsay."""
    lines = [value for name, value in scope["headers"] if name == FORWARDED_FOR]
    if lines:
        return str(lines[-1].decode("latin-1").rpartition(",")[2].strip())
    host, _ = scope.get("client") or ("", 0)
    return str(host)


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").strip()
