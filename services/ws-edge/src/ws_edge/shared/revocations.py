"""Keeps consumers out whose credentials were revoked: at the door, in calls, and in sockets that are open."""

import asyncio
from typing import Protocol

import structlog

from statecast.push.v1.revocation_pb2 import Revocation
from ws_edge.access.gateway import Caller
from ws_edge.errors import CLOSE_REVOKED, RequestError, RevokedError, UnavailableError
from ws_edge.hub.hub import Hub
from ws_edge.hub.subscription import Subscription
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import question
from ws_edge.shared.own_stores import EDGE, REVOCATIONS, revocation_key
from ws_edge.states import Version

AT_ONCE = 0.0
"""The keys of consumers who have a socket here are read by long poll."""

log = structlog.get_logger(__name__)


class Guest(Protocol):
    """Whoever is in as long as the consumer's credentials hold; a session."""

    caller: Caller

    def end(self, code: int, reason: str, /) -> None:
        """The credential no longer holds. Called on the event loop: it must neither block nor raise."""


class _Watch:
    """The watching of one consumer, for all sockets of that consumer."""

    def __init__(self) -> None:
        self.guests: set[Guest] = set()
        self.waiting: set[Guest] = set()
        """Those who are not in yet."""
        self.known = asyncio.Event()
        self.revocation: Revocation | None = None
        self.subscription: Subscription | None = None

    def started(self, subscription: Subscription, recovered: bool) -> None:
        """Nothing: the first version follows."""

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:  # noqa: ARG002  the hub says both
        """Keeps what is known, and lets nobody stay who may not."""
        self.revocation = version.row
        self.known.set()
        for guest in tuple(self.guests):
            try:
                check(guest.caller, self.revocation)
            except RevokedError as error:
                guest.end(CLOSE_REVOKED, str(error))

    def refused(self, _: Subscription, error: RequestError) -> None:
        """Never: the edge may read its own stores."""
        log.error("revocations_refused", reason=str(error))

    def delayed(self, _: Subscription) -> None:
        """Nothing: who waits has a time-out of their own."""


class Revocations:
    """Knows who is kept out. When it is not enabled, nobody is."""

    def __init__(self, hub: Hub, client: QueryClient, enabled: bool, patience: float) -> None:
        """`patience` is how long a new socket waits, in seconds, until it is known whether it may be opened."""
        self._hub = hub
        self._client = client
        self._enabled = enabled
        self._patience = patience
        self._watches: dict[str, _Watch] = {}

    async def enter(self, guest: Guest) -> None:
        """Lets the guest in, to be told when that ends, until `leave`. Raises RevokedError or UnavailableError."""
        if not self._enabled:
            return
        watch = self._watch(guest.caller.consumer.principal)
        watch.waiting.add(guest)
        try:
            async with asyncio.timeout(self._patience):
                await watch.known.wait()
            check(guest.caller, watch.revocation)
            watch.guests.add(guest)
            watch.waiting.discard(guest)
        except TimeoutError as error:
            self.leave(guest)
            raise UnavailableError("it cannot be known now whether your access still holds: connect again") from error
        except BaseException:
            self.leave(guest)
            raise

    def leave(self, guest: Guest) -> None:
        """The guest has gone, or has never been in."""
        principal = guest.caller.consumer.principal
        watch = self._watches.get(principal)
        if watch is None:
            return
        watch.guests.discard(guest)
        watch.waiting.discard(guest)
        if not watch.guests and not watch.waiting and watch.subscription is not None:
            self._hub.unsubscribe(watch.subscription)
            del self._watches[principal]

    async def check(self, caller: Caller) -> None:
        """For a single call: raises RevokedError, or RequestError when it cannot be known."""
        if not self._enabled:
            return
        principal = caller.consumer.principal
        watch = self._watches.get(principal)
        if watch is not None and watch.known.is_set():
            check(caller, watch.revocation)
            return
        (answer,) = await self._client.ask(REVOCATIONS, [question(revocation_key(principal))])
        if isinstance(answer, RequestError):
            raise answer
        check(caller, answer.row if isinstance(answer, Version) else None)

    def _watch(self, principal: str) -> _Watch:
        watch = self._watches.get(principal)
        if watch is None:
            watch = self._watches[principal] = _Watch()
            watch.subscription = self._hub.subscribe(watch, EDGE, revocation_key(principal), None, AT_ONCE)
        return watch


def check(caller: Caller, revocation: Revocation | None) -> None:
    """Raises RevokedError when the revocation is of the caller's credential.

    A token that was issued after it holds; whatever does not say when it was issued does not.
    """
    if revocation is None:
        return
    issued_at = caller.credential.issued_at
    if issued_at is None or issued_at <= revocation.revoked_at.ToNanoseconds() / 1e9:
        raise RevokedError(f"the access of {caller.consumer.principal} was revoked: ask the operators")
