"""What one socket still has to be sent: replies, the newest version of each key, and ranges that have changed."""

from collections import OrderedDict
from typing import Any, NamedTuple

from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.states import AnyKey, Version

Reply = dict[str, Any]
"""An encoded frame that answers a request; it is never dropped or replaced."""


class Item(NamedTuple):
    """The next thing to send: a reply, or a version with how many of its key it stands for beside itself.

    `snapshot` tells a version with which a subscription begins from one that came as a change.
    """

    reply: Reply | None
    version: Version | None = None
    skipped: int = 0
    snapshot: bool = False
    range: RangeSubscription | None = None
    """A range of which something is pending: what of it goes next is decided when it is sent."""


class Outbox:
    """Holds at most one version per key, so that its entries are bounded by the subscriptions and the open replies.

    Things leave in the order in which they came; a newer version takes the place of the one that it replaces.
    """

    __slots__ = ("_items", "_replies", "_serial", "_skipped", "_snapshots", "size")

    def __init__(self) -> None:
        self._items: OrderedDict[AnyKey | int, Version | RangeSubscription | Reply] = OrderedDict()
        self._skipped: dict[AnyKey, int] = {}
        self._snapshots: set[AnyKey] = set()
        self._serial = 0
        self._replies = 0
        self.size = 0
        """The bytes of all rows and replies that wait."""

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: AnyKey) -> bool:
        return key in self._items

    @property
    def replies(self) -> int:
        """How many replies wait; whoever makes requests must stop when they are many."""
        return self._replies

    def put(self, version: Version, snapshot: bool = False) -> bool:
        """Adds a version; returns whether one of its key that was not sent yet has been replaced."""
        old = self._items.get(version.key)
        if old is not None:
            self._skipped[version.key] = self._skipped.get(version.key, 0) + 1
            self.size -= _size(old)
        self._items[version.key] = version
        self.size += version.size
        if snapshot:
            self._snapshots.add(version.key)
        else:
            self._snapshots.discard(version.key)
        return old is not None

    def put_range(self, subscription: RangeSubscription) -> None:
        """Adds a range of which something is pending, unless it waits already."""
        self._items.setdefault(subscription.watch.key, subscription)

    def reply(self, reply: Reply) -> None:
        """Adds a reply."""
        self._serial += 1
        self._replies += 1
        self._items[self._serial] = reply
        self.size += _size(reply)

    def withdraw(self, key: AnyKey) -> None:
        """Forgets what is unsent of the key or range."""
        old = self._items.pop(key, None)
        if old is not None:
            self.size -= _size(old)
        self._skipped.pop(key, None)
        self._snapshots.discard(key)

    def clear(self) -> None:
        """Forgets everything that is unsent."""
        self._items.clear()
        self._skipped.clear()
        self._snapshots.clear()
        self._replies = 0
        self.size = 0

    def take(self) -> Item | None:
        """Removes and returns the oldest item; None when there is none."""
        if not self._items:
            return None
        _, item = self._items.popitem(last=False)
        self.size -= _size(item)
        if isinstance(item, Version):
            skipped = self._skipped.pop(item.key, 0) if self._skipped else 0
            snapshot = item.key in self._snapshots
            if snapshot:
                self._snapshots.discard(item.key)
            return Item(None, item, skipped, snapshot)
        if isinstance(item, RangeSubscription):
            return Item(None, range=item)
        self._replies -= 1
        return Item(item)


def _size(item: Version | RangeSubscription | Reply) -> int:
    """A range counts nothing: its rows are those that the edge holds anyway."""
    if isinstance(item, Version):
        return item.size
    return 0 if isinstance(item, RangeSubscription) else len(item.get("text") or item.get("bytes") or "")
