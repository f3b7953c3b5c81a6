"""The interface for programs: subscriptions over one live connection to an edge."""

import asyncio
import itertools
import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

from statecast.push.v1.push_pb2 import ServerFrame
from statecast.push.v1.query_pb2 import Query, QueryStep, WatchQuery
from statecast.push.v1.range_pb2 import Range, WatchRange
from statecast.push.v1.subscription_pb2 import Subscribe
from statecast.state.v1.state_pb2 import Position
from statecast_client.errors import StatecastError
from statecast_client.keys import KeyParts, key_of
from statecast_client.push.access import Access, Credentials
from statecast_client.push.connection import Connection
from statecast_client.push.protocol import Name, PushError, PushRefusedError, name_of, position_of, query_name
from statecast_client.push.query import QuerySubscription
from statecast_client.push.subscription import RangeSubscription, Subscription, Watched

GOES_ON = ("unavailable", "unreadable_row", "row_too_large")
"""Errors after which a subscription stays: its answer, or the key's next row, follows."""

log = logging.getLogger(__name__)

Watching = Subscription | RangeSubscription | QuerySubscription
After = Position | Mapping[str, object] | None
T = TypeVar("T", bound=Watching)


class PushClient:
    """A client that keeps subscriptions over one live connection to an edge.

    Use it so: `async with PushClient("wss://gateway/v1/stream", credentials={"apikey": KEY}) as client: …`

    It connects again by itself, to the next address when there are several, and resumes every subscription after the
    last position that it got. When the server refuses it for good, or newer credentials cannot be had, it ends:
    then every subscription, and every later call, raises why. `push/protocol.py` says which events end it.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        """`credentials` are the headers of the handshake, or a function that returns them, asynchronously or not.

        The function is called for each connection (`"connect"`); while one is open, with a fifth of the time left until
        its access ends, but at most 5 minutes ahead (`"expiring"`): it is renewed with a ticket from `/v1/tickets`, and
        goes on without a gap; and once when the server no longer accepts the last ones (`"expired"`). When it raises it
        is called again; but a StatecastError ends the client, unless it is connected. `proxy` is as in
        StatecastClient. Raises PushError for a wrong address.
        """
        urls = [addresses] if isinstance(addresses, str) else addresses
        self._connection = Connection(urls, Access(credentials or {}, tls, proxy), self._ask_all, self._receive)
        self._subscriptions: dict[Name, Watching] = {}
        self._asked: dict[str, Watching] = {}
        self._ids = map(str, itertools.count(1))
        self._ended: StatecastError | None = PushError("this client is not open: use it in `async with`")

    async def __aenter__(self) -> Self:
        self._ended = None
        self._run = asyncio.create_task(self._stay_connected())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._run.cancel()
        await asyncio.gather(self._run, return_exceptions=True)
        self._finish(PushError("this client is closed"), None)

    @property
    def reason(self) -> StatecastError | None:
        """Why it has ended, is not connected now, or could not renew its access; None while all is well."""
        return self._ended or self._connection.reason

    async def opened(self) -> None:
        """Returns as soon as it is connected. Raises why the client has ended."""
        if self._ended is None:
            waiting = asyncio.create_task(self._connection.opened.wait())
            try:
                await asyncio.wait((waiting, self._run), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
        if self._ended is not None:
            raise self._ended

    async def subscribe(
        self, store: str, key: KeyParts, *, after: After = None, interval_ms: int | None = None, repeat: bool = False
    ) -> Subscription:
        """Watches a key: its group, a tuple of group, sort and member, or a StateKey.

        `after` begins after a position, or after the `position` of an answer by REST, as JSON has it; `interval_ms` is
        the shortest time between two updates. With `repeat` the state comes again at each interval in which nothing has
        changed, with the position that it had; the server refuses that with `interval_ms=0`. Raises PushError when the
        key is watched already, when `after` is no position, and why the client has ended.
        """
        subscribe = Subscribe(store=store, key=key_of(key), interval_ms=interval_ms, repeat=repeat)
        return await self._begin(Subscription(subscribe, position_of(after), self._unsubscribe))

    async def watch_range(
        self, watched: Range, *, after: After = None, interval_ms: int | None = None
    ) -> RangeSubscription:
        """Watches the members of a group, or a part of them. Else as `subscribe`.

        `after` is a `through`, also that of a page which holds all rows of the same range.
        """
        watch = WatchRange(range=watched, interval_ms=interval_ms)
        return await self._begin(RangeSubscription(watch, position_of(after), self._unsubscribe))

    async def watch_query(
        self, name: str, first: Range, *steps: QueryStep, interval_ms: int | None = None
    ) -> QuerySubscription:
        """Watches a range, for each of its rows the range or key of the next step, and so on. Else as `subscribe`.

        The name is this client's own for the query. After a reconnect each range is resumed, as far as possible.
        """
        query = Query(name=name, first=first, steps=steps)
        return await self._begin(QuerySubscription(WatchQuery(query=query, interval_ms=interval_ms), self._unsubscribe))

    async def _begin(self, subscription: T) -> T:
        if self._ended is not None:
            raise self._ended
        if subscription.name in self._subscriptions:
            raise PushError(f"{subscription.name} is watched already: unsubscribe first")
        self._subscriptions[subscription.name] = subscription
        await self._ask(subscription)
        return subscription

    async def _unsubscribe(self, subscription: Watched[Any]) -> None:
        if self._subscriptions.get(subscription.name) is subscription:
            self._forget(subscription)
            await self._connection.send(subscription.closing(next(self._ids)))

    def _forget(self, subscription: Watched[Any]) -> None:
        del self._subscriptions[subscription.name]
        self._asked.pop(subscription.frame_id, None)

    async def _stay_connected(self) -> None:
        try:
            error = await self._connection.run()
        except Exception as bug:  # noqa: BLE001  nobody awaits this task, but readers wait for what it brings
            error = PushError(f"the client has failed: {bug!r}")
            error.__cause__ = bug
        self._finish(error, error)

    async def _ask_all(self) -> None:
        """Asks for every subscription, beside the reading. A server takes no more requests while its answers wait."""
        self._asked.clear()
        for subscription in tuple(self._subscriptions.values()):
            if self._subscriptions.get(subscription.name) is subscription:
                await self._ask(subscription)

    async def _ask(self, subscription: Watching) -> None:
        frame_id = next(self._ids)
        self._asked[frame_id] = subscription
        await self._connection.send(subscription.opening(frame_id))

    def _receive(self, frame: ServerFrame) -> None:
        if frame.HasField("query"):
            self._receive_of_query(frame)
            return
        match event := frame.WhichOneof("event"):
            case "changed" | "removed" | "range_changed":
                update = getattr(frame, event)
                subscription = self._subscriptions.get(name_of(update))
                if isinstance(subscription, Subscription | RangeSubscription) and subscription.in_force:
                    subscription.put(update)
            case "subscribed" | "range_watched" if frame.id in self._asked:
                self._asked[frame.id].begin(getattr(frame, event))
            case "error" if frame.id in self._asked and frame.error.code in GOES_ON:
                log.warning("%s: %s", frame.error.code, frame.error.message)
            case "error" if frame.id in self._asked:
                subscription = self._asked[frame.id]
                self._forget(subscription)
                subscription.finish(PushRefusedError(frame.error.code, frame.error.message))

    def _receive_of_query(self, frame: ServerFrame) -> None:
        query = self._subscriptions.get(query_name(frame.query.name))
        if not isinstance(query, QuerySubscription):
            return
        if self._asked.get(frame.id) is query:
            query.begin(frame.range_watched)
        if query.in_force:
            query.receive(frame)

    def _finish(self, ended: StatecastError, error: StatecastError | None) -> None:
        self._ended = ended
        subscriptions, self._subscriptions = self._subscriptions, {}
        for subscription in subscriptions.values():
            subscription.finish(error)
