"""Tickets of callers, and the seal that they share with page tokens. Any edge can open the tokens of another one."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from secrets import token_hex

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from ws_edge.auth.gateway import Caller, Credential
from ws_edge.errors import TicketRefusedError
from ws_edge.model.authorization import Consumer

TICKETS, PAGE_TOKENS = (b"statecast ws-edge ticket, version 2", b"statecast ws-edge page token, version 2")
"""Purposes of seals. Each separates its keys from the secrets of the gateway, and from the keys of the other."""

MAX_TICKET_LENGTH = 2048


class Seal:
    """Encrypts and authenticates texts, so that nobody else can read or make one."""

    def __init__(self, secrets: Sequence[str], purpose: bytes) -> None:
        """Seals with the first secret, and opens with all. A key reveals nothing about its secret."""
        keys = [hmac.digest(secret.encode(), purpose, sha256) for secret in secrets]
        self._fernet = MultiFernet([Fernet(urlsafe_b64encode(key)) for key in keys])

    def seal(self, text: str) -> str:
        """Returns the sealed text in base64url, without padding."""
        return self._fernet.encrypt(text.encode()).rstrip(b"=").decode()

    def open(self, sealed: str) -> str | None:
        """Returns the text; None when no edge has sealed it for this purpose."""
        try:
            return self._fernet.decrypt(f"{sealed}{'=' * (-len(sealed) % 4)}".encode(errors="replace")).decode()
        except InvalidToken:
            return None


class Tickets:
    """Issues tickets and redeems those of any edge: short-lived proof that the gateway has accepted a credential.

    No edge has to ask another. Each redeems a ticket once: it remembers its own redeemed tickets, but not those of the
    other edges. Times are seconds since 1970.
    """

    def __init__(self, secrets: Sequence[str], wall_clock: Callable[[], float], lifetime_s: float = 60.0) -> None:
        """Seals with the first secret, and accepts all. A ticket is valid for `lifetime_s` seconds."""
        self._seal = Seal(secrets, TICKETS)
        self._wall_clock = wall_clock
        self.lifetime_s = lifetime_s
        self._used: OrderedDict[str, float] = OrderedDict()
        """The ids of redeemed tickets, in the order of redemption, with the time when each expires."""

    def issue(self, caller: Caller) -> str:
        consumer, credential = caller.consumer, caller.credential
        content = {
            "id": token_hex(8),
            "consumer": [consumer.id, consumer.name, consumer.staff],
            "credential": [credential.expires_at, credential.issued_at],
            "use_by": self._wall_clock() + self.lifetime_s,
        }
        return self._seal.seal(json.dumps(content, separators=(",", ":"), ensure_ascii=False))

    def redeem(self, ticket: str, consumer: Consumer | None = None, address: str = "") -> Caller:
        """Redeems the ticket, and returns the caller that it was issued to, with the `address`.

        Raises TicketRefusedError unless the ticket is valid, new to this edge, and issued to `consumer`, if not None.
        """
        opened = self._seal.open(ticket[:MAX_TICKET_LENGTH])
        if opened is None:
            raise TicketRefusedError("the ticket is not one of ours: send the whole ticket from POST /v1/tickets")
        content, now = json.loads(opened), self._wall_clock()
        caller = Caller(Consumer(*content["consumer"]), Credential(*content["credential"]), address)
        expires_at, use_by = caller.credential.expires_at, content["use_by"]
        if use_by <= now:
            raise TicketRefusedError("the ticket is too old: get a new one from POST /v1/tickets and send it at once")
        if expires_at is not None and expires_at <= now:
            raise TicketRefusedError("the credential behind the ticket has expired: sign in again, then get a ticket")
        if consumer not in (None, caller.consumer):
            raise TicketRefusedError(
                "the ticket belongs to another consumer, or to other groups: open a new socket for it"
            )
        if content["id"] in self._used:
            raise TicketRefusedError("the ticket was used before: get a new one from POST /v1/tickets for each use")
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)
        self._used[content["id"]] = use_by
        return caller
