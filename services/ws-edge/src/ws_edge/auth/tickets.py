"""Tickets: short-lived proof that the gateway has accepted a consumer's newer credential, valid at every edge.

A ticket is a JSON document and its HMAC-SHA256, each in base64url, joined by a dot. The key is derived from the secret
that gateway and edges share, so no edge has to ask another.
"""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256

from ws_edge.auth.gateway import Caller, Credential, base64url_bytes
from ws_edge.authorization import Consumer
from ws_edge.errors import TicketRefusedError

PURPOSE = b"statecast ws-edge ticket, version 1"
"""Separates the key from the secret itself, and from other keys that may be derived from it."""

MAX_LENGTH = 2048


class Tickets:
    """Issues tickets and redeems those of any edge. Times are seconds since 1970."""

    def __init__(self, secrets: Sequence[str], wall_clock: Callable[[], float], lifetime: float) -> None:
        """The first secret signs, all are accepted; a ticket is valid for `lifetime` seconds."""
        self._keys = [hmac.digest(secret.encode(), PURPOSE, sha256) for secret in secrets]
        self._wall_clock = wall_clock
        self._lifetime = lifetime

    def issue(self, caller: Caller) -> str:
        """Returns a ticket for the caller's credential."""
        consumer, credential = caller.consumer, caller.credential
        content = {
            "consumer": [consumer.id, consumer.name, consumer.staff],
            "credential": [credential.expires_at, credential.issued_at],
            "use_by": self._wall_clock() + self._lifetime,
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        return f"{_encoded(body)}.{_encoded(hmac.digest(self._keys[0], body, sha256))}"

    def redeem(self, ticket: str, consumer: Consumer) -> Credential:
        """Returns the ticket's credential. Raises TicketRefusedError unless it is valid and the consumer's own."""
        holder = self.holder(ticket)
        if holder.consumer != consumer:
            raise TicketRefusedError("the ticket is of another consumer, or other groups: open a new socket for it")
        return holder.credential

    def holder(self, ticket: str, address: str = "") -> Caller:
        """Returns whom the ticket was issued to, with their `address`. Raises TicketRefusedError."""
        content = json.loads(self._verified(ticket))
        credential = Credential(*content["credential"])
        now = self._wall_clock()
        if content["use_by"] <= now:
            raise TicketRefusedError("the ticket is too old: get a new one from POST /v1/tickets and send it at once")
        if credential.expires_at is not None and credential.expires_at <= now:
            raise TicketRefusedError("the credential behind the ticket has expired: sign in again, then get a ticket")
        return Caller(Consumer(*content["consumer"]), credential, address)

    def _verified(self, ticket: str) -> bytes:
        body, _, signature = ticket[:MAX_LENGTH].partition(".")
        try:
            content, mac = base64url_bytes(body), base64url_bytes(signature)
        except ValueError:
            content, mac = b"", b""
        if not any(hmac.compare_digest(mac, hmac.digest(key, content, sha256)) for key in self._keys):
            raise TicketRefusedError("the ticket is not one of ours: send what POST /v1/tickets has answered, whole")
        return content


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
