"""Who calls: the identity in the gateway's headers, with proof that the gateway sent them."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any
from urllib.parse import unquote_to_bytes

from ws_edge.errors import GatewayRequiredError, MalformedFrameError, TooManyHeadersError
from ws_edge.model.authorization import STAFF_GROUP, Consumer

SECRET = b"x-gateway-secret"
CLAIMS = b"x-gateway-claims"
CUSTOM_ID = b"x-consumer-custom-id"
USERNAME = b"x-consumer-username"
GROUPS = b"x-consumer-groups"
"""None of these four may be missing: after its plugins, Kong deletes headers that a client names in `Connection`."""
DECIDING = (b"x-gateway-", b"x-consumer-", b"x-credential-", b"x-anonymous-", b"x-authenticated-")
"""Prefixes of the names of headers that say who calls, by which proof, and with which rights."""
MAX_HEADERS = 128
"""Headers of a call, as many as the library allows for a handshake; a gateway's plugins see far more and miss none."""
FORWARDED_FOR = b"x-forwarded-for"
WITH_PORT = re.compile(r"([0-9.]+):[0-9]+|\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?")
"""An address with the port of a connection, as some load balancers write it; IPv6 stands in brackets then."""
NOTHING = "none"
"""The value of such a header where there is nothing, for example as claims of a credential that is not a token."""

CLOCK_LEEWAY_S = 60.0
"""By so much the clocks of token issuers and edges may differ."""

MAX_TIME_S = 253_402_300_799.0
"""The last second of the year 9999; the contract and JSON cannot express later times."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The times of a consumer's credential, in seconds since 1970; None where it does not say."""

    expires_at: float | None = None
    issued_at: float | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The other end of a call or socket: the consumer, its credential, and the address that it comes from."""

    consumer: Consumer
    credential: Credential = Credential()
    address: str = ""


class Gateway:
    """Reads the gateway's headers; refuses calls that did not come through the gateway."""

    def __init__(self, secrets: Sequence[str], wall_clock: Callable[[], float]) -> None:
        """Any of `secrets` is proof; a certificate is none, because probes and scrapers have one too.

        `wall_clock` returns seconds since 1970.
        """
        self._wall_clock = wall_clock
        self._secrets = [secret.encode() for secret in secrets]

    def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Reads the caller from an ASGI scope.

        Raises GatewayRequiredError when the proof is missing or wrong, when one of the gateway's headers is missing,
        empty or unreadable, or when neither a customer nor staff is named.
        """
        headers = self._verified_headers(scope)
        claims, groups = _value(headers, CLAIMS), _value(headers, GROUPS)
        consumer_id, name = _only_value(headers, CUSTOM_ID), _only_value(headers, USERNAME)
        consumer = Consumer(consumer_id, name, STAFF_GROUP in {group.strip(" \t") for group in groups.split(",")})
        if not consumer.id and not consumer.staff:
            text = "the gateway named no consumer: sign in, and see that the consumer has a custom_id"
            raise GatewayRequiredError(text)
        return Caller(consumer, _credential(claims, self._wall_clock()), _address(scope))

    def stranger_address(self, scope: Mapping[str, Any]) -> str:
        """Returns an unauthenticated caller's address. Raises GatewayRequiredError as `caller` does."""
        self._verified_headers(scope)
        return _address(scope)

    def _verified_headers(self, scope: Mapping[str, Any]) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        proof = headers.get(SECRET, b"")
        if not any(compare_digest(proof, secret) for secret in self._secrets):
            raise GatewayRequiredError("only the gateway may call this address: connect through the gateway")
        return headers


def check_request(scope: Mapping[str, Any]) -> None:
    """Checks the rules that hold for every call and handshake, public ones included, from any sender.

    Raises MalformedFrameError when the address is not UTF-8, because it would be read as that of another key. Raises
    as `check_headers` does.
    """
    try:
        unquote_to_bytes(scope["raw_path"] + b"?" + scope["query_string"]).decode()
    except UnicodeDecodeError as error:
        raise MalformedFrameError("the address is not UTF-8: percent-encode its bytes") from error
    check_headers(scope["headers"])


def check_headers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Checks the headers of a call or handshake; their names are in lower case.

    Raises TooManyHeadersError, or GatewayRequiredError when a deciding header stands twice; underscores and hyphens
    count as the same. The gateway sends each once, so the other is the client's, and nothing tells them apart.
    """
    decided: set[bytes] = set()
    for count, (name, _) in enumerate(headers, 1):
        if count > MAX_HEADERS:
            raise TooManyHeadersError(f"there are more than {MAX_HEADERS} headers: send fewer")
        plain = name.replace(b"_", b"-")
        if plain.startswith(DECIDING):
            if plain in decided:
                raise GatewayRequiredError(f"the header {plain.decode('latin-1')} was sent twice: leave it out")
            decided.add(plain)


def _credential(claims: str, now: float) -> Credential:
    """Returns the times in a JSON Web Token's payload; no times for other credentials."""
    if not claims:
        return Credential()
    try:
        padding = "=" * (-len(claims) % 4)
        payload = json.loads(b64decode(claims + padding, b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise GatewayRequiredError(f"the header {CLAIMS.decode()} does not hold a token's claims: {error}") from error
    if not isinstance(payload, dict):
        raise GatewayRequiredError(f"the header {CLAIMS.decode()} does not hold a JSON object")
    for name in ("nbf", "iat"):
        if (_time(payload, name) or 0) > now + CLOCK_LEEWAY_S:
            text = f"the token's claim {name} lies in the future: wait until then, or set the clock of its issuer"
            raise GatewayRequiredError(text)
    return Credential(_time(payload, "exp"), _time(payload, "iat"))


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIME_S:
        raise GatewayRequiredError(f"the token's claim {name} is not a time: sign in with another token")
    return float(value)


def _address(scope: Mapping[str, Any]) -> str:
    """Returns the last address in X-Forwarded-For, which the gateway added; earlier ones were claimed by the client."""
    lines = [value for name, value in scope["headers"] if name == FORWARDED_FOR]
    address = _value({FORWARDED_FOR: lines[-1].rpartition(b",")[2]} if lines else {}, FORWARDED_FOR)
    with_port = WITH_PORT.fullmatch(address)
    return with_port[1] or with_port[2] if with_port else address


def _value(headers: Mapping[bytes, bytes], name: bytes) -> str:
    """Returns the gateway's text in UTF-8; empty where that is `none`. Raises GatewayRequiredError otherwise."""
    try:
        text = headers.get(name, b"").strip(b" \t").decode()
    except UnicodeDecodeError as error:
        raise GatewayRequiredError(
            f"the header {name.decode()} is not UTF-8: check the consumer's id and names"
        ) from error
    if not text:
        raise GatewayRequiredError(f"the header {name.decode()} is missing or empty: the gateway always sends it")
    return "" if text == NOTHING else text


def _only_value(headers: Mapping[bytes, bytes], name: bytes) -> str:
    """Returns the value of a header that is no list, as `_value`. A proxy joins two headers of one name by a comma."""
    value = _value(headers, name)
    if "," in value:
        raise GatewayRequiredError(f"the header {name.decode()} holds a comma: it was sent twice, or must have none")
    return value
