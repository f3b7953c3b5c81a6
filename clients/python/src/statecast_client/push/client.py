"""Keeps one live connection to an edge, and all subscriptions on it."""

import asyncio
import itertools
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import time
from types import TracebackType
from typing import Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from statecast.push.v1.push_pb2 import Error, ServerFrame
from statecast.push.v1.range_pb2 import Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Start, Subscribed
from statecast.state.v1.state_pb2 import Position
from statecast_client.push import frames
from statecast_client.push.backoff import Backoff
from statecast_client.push.errors import PushError, PushRefusedError
from statecast_client.push.subscription import RangeSubscription, Subscription, Update

CREDENTIALS_REFUSED = (401, 403, 404)
CLOSE_EXPIRED = 4401
CLOSED_FOR_GOOD = frozenset(range(4000, 5000)) - {CLOSE_EXPIRED}
"""After an expiry newer credentials may be at hand; if they are not, the next handshake is refused."""

RENEWED_AT = 0.8
"""The share of the access's remaining time after which it is renewed."""

Watching = Subscription | RangeSubscription
Headers = Callable[[], Mapping[str, str]]
Ticket = Callable[[], Awaitable[str]]


class PushClient:
    """`async with PushClient("wss://gateway/v1/stream", headers=lambda: {"apikey": KEY}) as client: …`

    It connects again by itself, to the next address when there are several, and resumes every subscription after the
    last position that it was told. It gives up only when the server refuses the credentials or closes the socket with
    a code from 4000 on: then every subscription raises PushRefusedError.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        headers: Headers = dict,
        ticket: Ticket | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`headers` returns the credentials, anew for each connection. `ticket` gets one from `POST /v1/tickets`: with
        it the access of the open socket is renewed before it expires; its errors end the client.
        """
        self._addresses = itertools.cycle([addresses] if isinstance(addresses, str) else addresses)
        self._headers = headers
        self._ticket = ticket
        self._tls = tls
        self._subscriptions: dict[frames.Name, Watching] = {}
        self._asked: dict[str, Watching] = {}
        self._ids = map(str, itertools.count(1))
        self._backoff = Backoff()
        self._reconnect_at = 0.0
        self._socket: ClientConnection | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._ended: PushError | None = PushError("this client is not open: use it in `async with`")

    async def __aenter__(self) -> Self:
        self._ended = None
        self._run = asyncio.create_task(self._stay_connected())
        self._run.add_done_callback(self._check)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        self._finish(PushError("this client is closed"), None)

    async def subscribe(
        self, store: str, key: str | Sequence[str], *, after: Position | None = None, interval_ms: int | None = None
    ) -> Subscription:
        """Watches a key: its group, or group, sort and member. `after` resumes from a position; `interval_ms` is the
        shortest time between two updates. Raises PushError when the key is watched already, or the client is closed.
        """
        state_key = frames.key_of(key)
        name = frames.name_of_key(store, state_key)
        subscription = Subscription(
            after,
            lambda frame_id, position: frames.subscribe(frame_id, store, state_key, position, interval_ms),
            lambda: self._unsubscribe(name, lambda frame_id: frames.unsubscribe(frame_id, store, state_key)),
        )
        await self._begin(name, subscription)
        return subscription

    async def watch_range(
        self, watched: Range, *, after: Position | None = None, interval_ms: int | None = None
    ) -> RangeSubscription:
        """Watches the members of a group, or a part of them. Else as `subscribe`."""
        name = frames.name_of_range(watched)
        subscription = RangeSubscription(
            after,
            lambda frame_id, position: frames.watch_range(frame_id, watched, position, interval_ms),
            lambda: self._unsubscribe(name, lambda frame_id: frames.unwatch_range(frame_id, watched)),
        )
        await self._begin(name, subscription)
        return subscription

    async def _begin(self, name: frames.Name, subscription: Watching) -> None:
        if self._ended is not None:
            raise self._ended
        if name in self._subscriptions:
            raise PushError(f"{name} is watched already: unsubscribe first")
        self._subscriptions[name] = subscription
        subscription.name = name
        await self._ask(subscription)

    async def _unsubscribe(self, name: frames.Name, frame: Callable[[str], bytes]) -> None:
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:
            self._asked.pop(subscription.request, None)
            await self._send(frame(next(self._ids)))

    async def _stay_connected(self) -> None:
        while True:
            try:
                await self._serve(next(self._addresses))
            except InvalidStatus as error:
                if error.response.status_code in CREDENTIALS_REFUSED:
                    return self._refused(str(error.response.status_code), error.response.body.decode(errors="replace"))
            except ConnectionClosed as closed:
                if closed.rcvd is not None and closed.rcvd.code in CLOSED_FOR_GOOD:
                    return self._refused(str(closed.rcvd.code), closed.rcvd.reason)
            except (OSError, TimeoutError, InvalidHandshake):
                pass  # the next attempt may find the server
            finally:
                self._disconnected()
            asked_for = max(0.0, self._reconnect_at - time())
            self._reconnect_at = 0.0
            await asyncio.sleep(asked_for + self._backoff.next())

    async def _serve(self, address: str) -> None:
        async with connect(
            address, additional_headers=self._headers(), subprotocols=[frames.SUBPROTOCOL], ssl=self._tls
        ) as socket:
            self._socket = socket
            for subscription in tuple(self._subscriptions.values()):
                await self._ask(subscription)
            if self._ticket is not None:
                self._renew_in(0.0, self._ticket)
            while True:
                frame = ServerFrame.FromString(await socket.recv(decode=False))
                self._backoff.reset()
                self._receive(frame)

    def _disconnected(self) -> None:
        self._socket = None
        self._asked.clear()
        if self._renewal is not None:
            self._renewal.cancel()

    def _receive(self, frame: ServerFrame) -> None:
        match frame.WhichOneof("event"):
            case "changed":
                self._update(frame.changed)
            case "removed":
                self._update(frame.removed)
            case "range_changed":
                self._member(frame.range_changed)
            case "subscribed" if frame.id in self._asked:
                self._started(self._asked[frame.id], frame.subscribed)
            case "range_watched" if frame.id in self._asked:
                self._started(self._asked[frame.id], frame.range_watched)
            case "error" if frame.id in self._asked:
                self._error(self._asked[frame.id], frame.error)
            case "authenticated" if frame.authenticated.HasField("expires_at") and self._ticket is not None:
                left = frame.authenticated.expires_at.ToNanoseconds() / 1e9 - time()
                self._renew_in(left * RENEWED_AT, self._ticket)
            case "reconnect":
                self._reconnect_at = time() + frame.reconnect.delay_ms / 1000

    def _update(self, update: Update) -> None:
        subscription = self._subscriptions.get(frames.name_of_key(update.store, update.key))
        if isinstance(subscription, Subscription):
            subscription.put(update)

    def _member(self, changed: RangeChanged) -> None:
        subscription = self._subscriptions.get(frames.name_of_range(changed.range))
        if isinstance(subscription, RangeSubscription):
            subscription.put(changed)

    def _started(self, subscription: Watching, begun: Subscribed | RangeWatched) -> None:
        subscription.recovered = begun.start == Start.START_RECOVERED
        if isinstance(subscription, RangeSubscription) and isinstance(begun, RangeWatched):
            subscription.begin(begun)

    def _error(self, subscription: Watching, error: Error) -> None:
        if error.code == "unavailable":
            return  # the subscription stays, and its answer follows
        self._asked.pop(subscription.request, None)
        self._subscriptions.pop(subscription.name, None)
        subscription.finish(PushRefusedError(error.code, error.message))

    def _renew_in(self, pause: float, ticket: Ticket) -> None:
        self._renewal = asyncio.create_task(self._renew(ticket, pause))
        self._renewal.add_done_callback(self._check)

    async def _renew(self, ticket: Ticket, pause: float) -> None:
        await asyncio.sleep(pause)
        await self._send(frames.auth_refresh(next(self._ids), await ticket()))

    async def _ask(self, subscription: Watching) -> None:
        subscription.request = frame_id = next(self._ids)
        self._asked[frame_id] = subscription
        await self._send(subscription.ask(frame_id, subscription.position))

    async def _send(self, frame: bytes) -> None:
        if self._socket is not None:
            with suppress(ConnectionClosed):  # the next connection asks for all that is watched
                await self._socket.send(frame)

    def _check(self, task: asyncio.Task[None]) -> None:
        """Ends the client when a task has failed: the functions that it was given may raise anything."""
        if not task.cancelled() and (cause := task.exception()) is not None:
            error = PushError(f"the credentials could not be had: {cause!r}")
            error.__cause__ = cause
            self._run.cancel()
            self._finish(error, error)

    def _refused(self, code: str, reason: str) -> None:
        error = PushRefusedError(code, reason or f"the server refuses the connection ({code})")
        self._finish(error, error)

    def _finish(self, ended: PushError, error: PushError | None) -> None:
        self._ended = ended
        subscriptions, self._subscriptions = self._subscriptions, {}
        for subscription in subscriptions.values():
            subscription.finish(error)
