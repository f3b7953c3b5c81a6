"""What one socket still has to be sent: replies, the newest state of each key, and ranges that have changed."""

from collections import OrderedDict
from typing import Any, NamedTuple

from ws_edge.hub.watch import Subscription
from ws_edge.states import AnyKey, KeyState

Reply = dict[str, Any]
"""An encoded frame that answers a request; it is never dropped or replaced."""


class Item(NamedTuple):
    """A thing to send: a reply, the state of a key, or a range, whose oldest change is taken when it is sent."""

    content: Reply | KeyState | Subscription
    size: int = 0
    """The bytes of the reply or row. A range counts nothing: its rows are those that the edge holds anyway."""
    skipped: int = 0
    """How many earlier states of the key this one replaces."""
    snapshot: bool = False
    """Whether the subscription begins with the state, rather than the key having changed."""


class Outbox:
    """Holds at most one state per key, so the subscriptions and the open replies bound its size.

    Things leave in the order in which they came; a newer state takes the place of the one that it replaces.
    """

    __slots__ = ("_items", "_serial", "replies", "size")

    def __init__(self) -> None:
        self._items: OrderedDict[AnyKey | int, Item] = OrderedDict()
        self._serial = 0
        self.replies = 0
        """How many replies wait; no more requests may be read when they are many."""
        self.size = 0
        """The bytes of all rows and replies that wait."""

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: AnyKey) -> bool:
        return key in self._items

    def put(self, state: KeyState, snapshot: bool = False) -> bool:
        """Adds a state; returns whether it has replaced one of its key that was not sent yet."""
        old = self._items.get(state.key)
        skipped = 0
        if old is not None:
            skipped = old.skipped + 1
            self.size -= old.size
        self._items[state.key] = Item(state, state.size, skipped, snapshot)
        self.size += state.size
        return old is not None

    def put_range(self, subscription: Subscription) -> None:
        """Adds a range of which something is pending, unless it waits already."""
        self._items.setdefault(subscription.watch.key, Item(subscription))

    def reply(self, reply: Reply) -> None:
        """Adds a reply."""
        size = len(reply.get("text") or reply.get("bytes") or "")
        self._serial += 1
        self._items[self._serial] = Item(reply, size)
        self.replies += 1
        self.size += size

    def withdraw(self, key: AnyKey) -> None:
        """Forgets what is unsent of the key or range."""
        old = self._items.pop(key, None)
        if old is not None:
            self.size -= old.size

    def clear(self) -> None:
        """Forgets everything that is unsent."""
        self._items.clear()
        self.replies = self.size = 0

    def take(self) -> Item | None:
        """Removes and returns the oldest item; None when there is none."""
        if not self._items:
            return None
        _, item = self._items.popitem(last=False)
        self.size -= item.size
        if isinstance(item.content, dict):
            self.replies -= 1
        return item
