"""One consumer's interest in one key, and all interest in that key together."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.questions import Question, question
from ws_edge.states import Position, StoreKey, Version, is_news

INSISTENCE = 3
"""So many answers in a row bring back an epoch that was left."""


class Subscriber(Protocol):
    """Whoever is told; a session. The hub calls it on the event loop: it must neither block nor raise."""

    def started(self, subscription: Subscription, recovered: bool, /) -> None:
        """The subscription is in force; `recovered` when its position was accepted, so only what is newer follows."""

    def changed(self, subscription: Subscription, version: Version, snapshot: bool, /) -> None:
        """The key holds something newer than the subscriber was told last; `snapshot` when that is its beginning."""

    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        """The subscription has ended, and nothing that it brought and that is still unsent may be sent."""

    def delayed(self, subscription: Subscription, /) -> None:
        """The first answer takes long; it will come. Told once."""


class Subscription:
    """One subscriber's watching of one key."""

    __slots__ = (
        "active",
        "consumer",
        "interval",
        "next_at",
        "position",
        "queued",
        "reference",
        "started",
        "subscriber",
        "watch",
    )

    def __init__(
        self,
        watch: Watch,
        subscriber: Subscriber,
        consumer: Consumer,
        after: Position | None,
        interval: float,
        reference: str = "",
    ) -> None:
        self.watch = watch
        self.subscriber = subscriber
        self.consumer = consumer
        self.position = after
        """The newest position that the subscriber was told; at first the one it came with."""
        self.interval = interval
        """The shortest time between two versions, in seconds; 0 is told each as soon as the edge hears of it."""
        self.reference = reference
        """The subscriber's name for the request."""
        self.next_at = 0.0
        self.started = False
        self.queued = False
        self.active = True

    def lacks(self, version: Version) -> bool:
        """Whether the subscriber must still be told the version: this is what keeps state from going backwards."""
        position = self.position
        return position is None or position.epoch != version.position.epoch or position.offset < version.position.offset


class Watch:
    """One key that somebody watches: what is known of it, who is to be told, and when it is asked for again."""

    __slots__ = (
        "confirmed_at",
        "due",
        "in_flight",
        "insisted",
        "interval",
        "intervals",
        "key",
        "latest",
        "live",
        "position",
        "question",
        "retired",
        "slot",
        "subscriptions",
        "waiting",
    )

    def __init__(self, key: StoreKey, now: float) -> None:
        self.key = key
        self.latest: Version | None = None
        self.position: Position | None = None
        """How far the key is known: the latest version's position, or a later one at which there was still no row."""
        self.retired: frozenset[int] = frozenset()
        """Epochs that were left: a replica that still answers with one of them is behind."""
        self.insisted = 0
        """How many answers in a row were of retired epochs."""
        self.question: Question | None = None
        """What the poller asks; kept while the position stays."""
        self.subscriptions: set[Subscription] = set()
        self.waiting: dict[Subscription, None] = {}
        """Those that have not been told their first version."""
        self.intervals: Counter[float] = Counter()
        self.interval = 0.0
        """The fastest interval that a subscription asks for; 0 keeps the key in a long poll."""
        self.in_flight = False
        self.live = False
        """Whether the poller holds a long poll open for the key, and so hears of its changes at once."""
        self.due = now
        self.slot = -1
        self.confirmed_at = 0.0
        """When a replica last answered for the key."""

    def add(self, subscription: Subscription) -> None:
        """Counts the subscription in."""
        self.subscriptions.add(subscription)
        self.intervals[subscription.interval] += 1
        self.interval = min(self.intervals)

    def remove(self, subscription: Subscription) -> None:
        """Counts the subscription out."""
        self.subscriptions.discard(subscription)
        self.waiting.pop(subscription, None)
        self.intervals[subscription.interval] -= 1
        if not self.intervals[subscription.interval]:
            del self.intervals[subscription.interval]
            self.interval = min(self.intervals, default=0.0)

    @property
    def is_live(self) -> bool:
        """Whether somebody wants to be told of changes as soon as they are there."""
        return bool(self.subscriptions) and self.interval == 0

    def ask(self) -> Question:
        """What to ask the query service: what is newer than what is known."""
        self.question = (self.question or question(self.key)).since(self.position)
        return self.question

    def accept(self, version: Version) -> bool:
        """Takes the version over unless it is old, or nothing new; returns whether subscribers are to be told."""
        latest, known = self.latest, self.position
        if latest is not None and known is not None:
            if version.position.epoch in self.retired and not self._insists():
                return False
            if version.position.epoch != latest.position.epoch:
                self.retired = (self.retired | {latest.position.epoch}) - {version.position.epoch}
            elif version.position <= known or not is_news(latest, version):
                self.confirm()
                self.position = max(known, version.position)
                return False
        self.latest, self.position, self.insisted = version, version.position, 0
        return True

    def confirm(self) -> None:
        """A replica of the latest version's epoch has answered that nothing is newer."""
        self.insisted = 0

    def _insists(self) -> bool:
        """Whether a retired epoch must be right after all: epochs have no order, so one may be left by mistake."""
        self.insisted += 1
        return self.insisted >= INSISTENCE
