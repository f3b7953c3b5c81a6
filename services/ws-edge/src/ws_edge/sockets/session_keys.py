"""The keys that one socket watches."""

from ws_edge.authorization import check_key
from ws_edge.dialects.frames import CancelRequest, WatchRequest
from ws_edge.errors import CLOSE_SLOW, RequestError
from ws_edge.hub.subscription import Subscription
from ws_edge.sockets.watched import Watched
from ws_edge.states import Position, StoreKey, Version
from ws_edge.stores import find


class SessionKeys(Watched[StoreKey, Subscription]):
    """A Subscriber for all keys of a session. The hub hands it versions, which it passes on to the writer."""

    __slots__ = ()

    def reached(self, key: StoreKey) -> Position | None:
        """Through which the client has been sent everything of the key; None when that is nothing, or not all."""
        subscription = self._subscriptions.get(key)
        return None if subscription is None or self._writer.holds(key) else subscription.position

    def watch(self, request: WatchRequest) -> None:
        """Starts watching a key, or changes how it is watched. Raises RequestError."""
        around, key = self._around, request.key
        check_key(self._consumer, find(around.stores, key.store).rule, key)
        self._make_room(key, around.limits.max_subscriptions, "keys")
        interval = around.limits.interval(request.interval_ms)
        subscription = around.hub.subscribe(self, self._consumer, key, request.after, interval, request.reference)
        if subscription.active:
            self._subscriptions[key] = subscription
            self._desk.count()

    def cancel(self, request: CancelRequest) -> None:
        """Ends the watching of a key; one that is not watched is confirmed alike."""
        self._drop(request.key)
        self._writer.reply(self._dialect.cancelled(request))

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
        self._refuse(subscription.watch.key, error, subscription.reference)

    def delayed(self, subscription: Subscription) -> None:
        """See Subscriber."""
        self._announce_delay(subscription.watch.key, subscription.reference)
