"""Revocation: refuses calls and sockets of consumers after their access was revoked, and closes their open sockets."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from typing_extensions import override

from statecast.push.v2.revocation_pb2 import Revocation
from ws_edge.auth.gateway import CLOCK_LEEWAY_S, Caller
from ws_edge.channels import EDGE_CONSUMER, REVOCATIONS
from ws_edge.channels.kafka_writer import Writer, configured
from ws_edge.errors import CLOSE_REVOKED, RevokedError, UnavailableError
from ws_edge.model.questions import Question
from ws_edge.model.states import StoreKey
from ws_edge.model.stores import Store
from ws_edge.upstream.query_client import QueryClient
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.hub import Hub
from ws_edge.watches.subscription import Subscriber, Subscription

log = structlog.get_logger(__name__)


class RevocationListener(Protocol):
    """A session, which stays open as long as its caller's access is not revoked."""

    caller: Caller

    def end(self, code: int, reason: str, /) -> None:
        """Access was revoked. Called on the event loop: must neither block nor raise."""


@dataclass(eq=False)
class _RevocationWatch(Subscriber):
    """Subscriber of one consumer's revocation, on behalf of all sockets of that consumer."""

    listeners: dict[RevocationListener, bool] = field(default_factory=dict)
    """Whether each is admitted, rather than waiting for the first answer; that has a time-out of its own."""
    known: asyncio.Event = field(default_factory=asyncio.Event)
    revocation: Revocation | None = None
    subscription: Subscription | None = None

    @property
    def is_current(self) -> bool:
        """Whether the revocation is known, and was read without a failure since: it may have changed in an outage."""
        is_read = self.subscription is not None and self.subscription.watch.failing_since is None
        return is_read and self.known.is_set()

    @override
    def ready(self, subscription: Subscription, /) -> None:
        if subscription.take_failure() is not None:
            return
        subscription.take_beginning()
        news = subscription.take_row()
        subscription.take_token()
        if news is not None and news.state.is_unreadable:
            return  # it is logged: known consumers stay, and others are not let in
        self.revocation = None if news is None else news.state.row
        self.known.set()
        ended = 0
        for listener in [listener for listener, is_admitted in self.listeners.items() if is_admitted]:
            try:
                check(listener.caller, self.revocation)
            except RevokedError as error:
                ended += 1
                listener.end(CLOSE_REVOKED, str(error))
        if ended:
            log.info("consumer_revoked", consumer=subscription.watch.question.group, sockets=ended)


@dataclass
class Revocations:
    """Checks revocations. When they are not enabled, nobody is refused."""

    hub: Hub
    client: QueryClient
    store: Store
    """REVOCATIONS, with the most by which answers may lag; those of a replica that is further behind do not count."""
    enabled: bool
    first_answer_timeout_s: float
    """How long a new socket waits for the first answer about its consumer."""
    _watches: dict[str, _RevocationWatch] = field(default_factory=dict, init=False)

    async def enter(self, listener: RevocationListener) -> None:
        """Adds a listener, which is ended on revocation, until `leave`. Raises RevokedError or UnavailableError."""
        if not self.enabled:
            return
        principal = listener.caller.consumer.principal
        watch = self._watches.get(principal)
        if watch is None:
            watch = self._watches[principal] = _RevocationWatch()
            # The interval 0 makes the hub watch the key by long poll.
            question = Question(self.store, principal)
            watch.subscription = self.hub.subscribe(watch, question, WatchOptions(EDGE_CONSUMER))
        watch.listeners[listener] = False
        with ExitStack() as refused:
            refused.callback(self.leave, listener)
            try:
                async with asyncio.timeout(self.first_answer_timeout_s):
                    await watch.known.wait()
            except TimeoutError as error:
                text = "it cannot be known now whether your access still holds: connect again"
                raise UnavailableError(text) from error
            if not watch.is_current:
                await self.check(listener.caller)
            check(listener.caller, watch.revocation)
            watch.listeners[listener] = True
            refused.pop_all()

    def leave(self, listener: RevocationListener) -> None:
        """Removes a listener; does nothing for one that was not added."""
        principal = listener.caller.consumer.principal
        watch = self._watches.get(principal)
        if watch is None:
            return
        watch.listeners.pop(listener, None)
        if not watch.listeners and watch.subscription is not None:
            self.hub.unsubscribe(watch.subscription)
            del self._watches[principal]

    async def check(self, caller: Caller) -> None:
        """Checks a single call. Raises RevokedError; RequestError when the query service does not answer."""
        if not self.enabled:
            return
        principal = caller.consumer.principal
        watch = self._watches.get(principal)
        if watch is not None and watch.is_current:
            check(caller, watch.revocation)
        else:
            rows = (await self.client.get(Question(self.store, principal))).states
            for state in rows:
                state.check_readable()
                check(caller, state.row)


def check(caller: Caller, revocation: Revocation | None) -> None:
    """Raises RevokedError if there is a revocation, unless the credential was issued after it for certain.

    The clock of its issuer may be ahead by CLOCK_LEEWAY_S.
    """
    issued_at = caller.credential.issued_at
    if revocation is None:
        return
    if issued_at is None or issued_at <= revocation.revoked_at.ToNanoseconds() / 1e9 + CLOCK_LEEWAY_S:
        raise RevokedError(f"the access of {caller.consumer.label} was revoked: ask the operators")


@dataclass(frozen=True)
class RevocationLog:
    """Records revocations, on which every edge acts.

    Every method raises MalformedFrameError for an impossible consumer, UnavailableError when Kafka does not
    acknowledge, and NotConfiguredError when there is no writer.
    """

    writer: Writer | None
    wall_clock: Callable[[], float]

    async def revoke(self, principal: str) -> Revocation:
        """Revokes the consumer's access from now on. Returns the written revocation, once Kafka has acknowledged it."""
        revocation = Revocation()
        revocation.revoked_at.FromNanoseconds(round(self.wall_clock() * 1e9))
        await self._write(principal, revocation)
        return revocation

    async def lift(self, principal: str) -> None:
        """Gives the consumer access again; does nothing for one that was never revoked."""
        await self._write(principal, None)

    async def _write(self, principal: str, revocation: Revocation | None) -> None:
        writer = configured(self.writer, "revocation is")
        Question(REVOCATIONS, principal).check()
        await writer.write({revocation_key(principal): revocation})


def revocation_key(principal: str) -> StoreKey:
    return StoreKey(REVOCATIONS.name, principal)
