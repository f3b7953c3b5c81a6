"""Short-lived proof that a consumer has shown the gateway a newer credential, good at every edge.

A ticket is what it says as JSON and an HMAC-SHA256 of that, each in base64url, with a dot between them. The key is
derived from the secret that gateway and edges share, so no edge has to ask another.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256

from ws_edge.access.gateway import Caller, Credential
from ws_edge.authorization import Consumer
from ws_edge.errors import TicketRefusedError

PURPOSE = b"statecast ws-edge ticket, version 1"
"""Keeps the key apart from the secret itself, and from whatever else may be derived from it."""

LONGEST = 2048


class Tickets:
    """Issues tickets and redeems those of all edges. Times are seconds since 1970."""

    def __init__(self, secrets: Sequence[str], clock: Callable[[], float], lifetime: float) -> None:
        """The first secret signs, all are accepted; a ticket may be used for `lifetime` seconds."""
        self._keys = [hmac.digest(secret.encode(), PURPOSE, sha256) for secret in secrets]
        self._clock = clock
        self._lifetime = lifetime

    def issue(self, caller: Caller) -> str:
        """Returns a ticket for what the caller has shown."""
        consumer, credential = caller.consumer, caller.credential
        content = {
            "consumer": [consumer.id, consumer.name, consumer.staff],
            "credential": [credential.expires_at, credential.issued_at],
            "use_by": self._clock() + self._lifetime,
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        return f"{_encoded(body)}.{_encoded(hmac.digest(self._keys[0], body, sha256))}"

    def redeem(self, ticket: str, consumer: Consumer) -> Credential:
        """Returns what was shown for the ticket. Raises TicketRefusedError unless it is good and the consumer's."""
        holder = self.holder(ticket)
        if holder.consumer != consumer:
            raise TicketRefusedError("the ticket is of another consumer, or other groups: open a new socket for it")
        return holder.credential

    def holder(self, ticket: str, address: str = "") -> Caller:
        """Returns who has got the ticket, and for what; `address` is theirs. Raises TicketRefusedError."""
        content = json.loads(self._verified(ticket))
        credential = Credential(*content["credential"])
        now = self._clock()
        if content["use_by"] <= now:
            raise TicketRefusedError("the ticket is too old: get a new one from POST /v1/tickets and send it at once")
        if credential.expires_at is not None and credential.expires_at <= now:
            raise TicketRefusedError("the credential behind the ticket has expired: sign in again, then get a ticket")
        return Caller(Consumer(*content["consumer"]), credential, address)

    def _verified(self, ticket: str) -> bytes:
        body, _, signature = ticket[:LONGEST].partition(".")
        try:
            content, shown = _decoded(body), _decoded(signature)
        except ValueError:
            content, shown = b"", b""
        if not any(hmac.compare_digest(shown, hmac.digest(key, content, sha256)) for key in self._keys):
            raise TicketRefusedError("the ticket is not one of ours: send what POST /v1/tickets has answered, whole")
        return content


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
