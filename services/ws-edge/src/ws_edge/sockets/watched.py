"""What one socket watches of one kind, keys or ranges."""

from typing import Generic, TypeVar

from ws_edge.access.quotas import Share
from ws_edge.authorization import Consumer
from ws_edge.dialects.frames import Dialect
from ws_edge.errors import RequestError, TooManySubscriptionsError, UnavailableError
from ws_edge.hub.interest import AnySubscription
from ws_edge.sockets.desk import Desk
from ws_edge.sockets.socket_writer import SocketWriter
from ws_edge.sockets.surroundings import Surroundings
from ws_edge.states import RangeKey, StoreKey

Key = TypeVar("Key", StoreKey, RangeKey)
Subscribed = TypeVar("Subscribed", bound=AnySubscription)


class Watched(Generic[Key, Subscribed]):
    """The subscriptions of a session, with what is done alike for keys and for ranges."""

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
        self._subscriptions: dict[Key, Subscribed] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, key: Key) -> bool:
        return key in self._subscriptions

    def end_all(self) -> None:
        """Ends the watching of all of them."""
        for subscription in self._subscriptions.values():
            self._around.hub.unsubscribe(subscription)
        self._subscriptions.clear()

    def _make_room(self, key: Key, limit: int, kind: str) -> None:
        """Ends the subscription that is to be replaced; raises TooManySubscriptionsError when one more is too many."""
        held = self._subscriptions.get(key)
        if held is not None:
            self._around.hub.unsubscribe(held)
            self._writer.withdraw(key)
            return
        self._share.check_subscription()
        if len(self._subscriptions) >= limit:
            raise TooManySubscriptionsError(f"a socket may watch {limit} {kind}: cancel some, or open another socket")

    def _drop(self, key: Key) -> None:
        """Ends the subscription, if there is one, and forgets what is unsent of it."""
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            self._around.hub.unsubscribe(subscription)
            self._desk.count()
        self._writer.withdraw(key)

    def _refuse(self, key: Key, error: RequestError, reference: str) -> None:
        self._drop(key)
        self._desk.fail(error, reference)

    def _announce_delay(self, key: Key, reference: str) -> None:
        text = f"{key} cannot be looked up now: keep the socket, the answer follows when it can be"
        self._desk.fail(UnavailableError(text), reference)
