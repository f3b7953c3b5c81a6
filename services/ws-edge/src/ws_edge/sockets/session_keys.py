"""The keys that one socket watches."""

from ws_edge.access.quotas import Share
from ws_edge.authorization import Consumer, check_key
from ws_edge.dialects.frames import CancelRequest, Dialect, WatchRequest
from ws_edge.errors import CLOSE_SLOW, RequestError, TooManySubscriptionsError, UnavailableError
from ws_edge.hub.subscription import Subscription
from ws_edge.sockets.desk import Desk
from ws_edge.sockets.socket_writer import SocketWriter
from ws_edge.sockets.surroundings import Surroundings
from ws_edge.states import Position, StoreKey, Version
from ws_edge.stores import find


class SessionKeys:
    """A Subscriber for all keys of a session. The hub hands it versions, which it passes on to the writer."""

    __slots__ = ("_around", "_consumer", "_desk", "_dialect", "_share", "_subscriptions", "_writer")

    def __init__(
        self, around: Surroundings, consumer: Consumer, dialect: Dialect, share: Share, writer: SocketWriter, desk: Desk
    ) -> None:
        self._around = around
        self._consumer = consumer
        self._dialect = dialect
        self._share = share
        self._writer = writer
        self._desk = desk
        self._subscriptions: dict[StoreKey, Subscription] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, key: StoreKey) -> bool:
        return key in self._subscriptions

    def reached(self, key: StoreKey) -> Position | None:
        """Through which the client has been sent everything of the key; None when that is nothing, or not all."""
        subscription = self._subscriptions.get(key)
        return None if subscription is None or self._writer.holds(key) else subscription.position

    def watch(self, request: WatchRequest) -> None:
        """Starts watching a key, or changes how it is watched. Raises RequestError."""
        around, key = self._around, request.key
        check_key(self._consumer, find(around.stores, key.store).rule, key)
        held = self._subscriptions.get(key)
        if held is None:
            self._check_room()
        else:
            around.hub.unsubscribe(held)
            self._writer.withdraw(key)
        interval = around.limits.interval(request.interval_ms)
        subscription = around.hub.subscribe(self, self._consumer, key, request.after, interval, request.reference)
        if subscription.active:
            self._subscriptions[key] = subscription
            self._desk.count()

    def cancel(self, request: CancelRequest) -> None:
        """Ends the watching of a key; one that is not watched is confirmed alike."""
        subscription = self._subscriptions.pop(request.key, None)
        if subscription is not None:
            self._around.hub.unsubscribe(subscription)
            self._desk.count()
        self._writer.withdraw(request.key)
        self._writer.reply(self._dialect.cancelled(request))

    def end_all(self) -> None:
        """Ends the watching of all keys."""
        for subscription in self._subscriptions.values():
            self._around.hub.unsubscribe(subscription)
        self._subscriptions.clear()

    def started(self, subscription: Subscription, recovered: bool) -> None:
        """See Subscriber: confirms it, if the dialect does."""
        reply = self._dialect.started(subscription, recovered)
        if reply is not None:
            self._writer.reply(reply)

    def changed(self, _: Subscription, version: Version, snapshot: bool) -> None:
        """See Subscriber: puts the version into the outbox."""
        self._writer.put(version, snapshot)
        limit = self._around.limits.max_outbox_bytes
        if self._writer.unsent_bytes > limit:
            text = f"more than {limit} bytes wait for you: read faster, or watch less on a socket"
            self._desk.end(CLOSE_SLOW, text)

    def refused(self, subscription: Subscription, error: RequestError) -> None:
        """See Subscriber."""
        key = subscription.watch.key
        self._subscriptions.pop(key, None)
        self._writer.withdraw(key)
        self._desk.count()
        self._desk.fail(error, subscription.reference)

    def delayed(self, subscription: Subscription) -> None:
        """See Subscriber."""
        text = f"{subscription.watch.key} cannot be looked up now: keep the socket, the answer follows when it can be"
        self._desk.fail(UnavailableError(text), subscription.reference)

    def _check_room(self) -> None:
        self._share.check_subscription()
        limit = self._around.limits.max_subscriptions
        if len(self._subscriptions) >= limit:
            raise TooManySubscriptionsError(f"a socket may watch {limit} keys: cancel some, or open another socket")
