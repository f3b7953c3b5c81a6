"""Whatever is watched and whoever watches it: when it is asked for again, and at which interval who is told.

The hub knows these two classes alone. `subscription` has those of keys, `range_watch` and `range_subscription` those of
ranges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.querying.questions import AnyQuestion
from ws_edge.states import AnyKey, Position

INSISTENCE = 3
"""So many answers in a row bring back an epoch that was left."""


class AnySubscription(ABC):
    """One subscriber's watching of one key or range. The hub calls it; what it tells must neither block nor raise."""

    __slots__ = ("active", "consumer", "interval", "next_at", "position", "queued", "reference", "started", "watch")

    def __init__(
        self, watch: AnyWatch, consumer: Consumer, after: Position | None, interval: float, reference: str
    ) -> None:
        self.watch = watch
        self.consumer = consumer
        self.position = after
        """The newest position that the subscriber was told; at first the one it came with."""
        self.interval = interval
        """The shortest time between two deliveries, in seconds; 0 is told each as soon as the edge hears of it."""
        self.reference = reference
        """The subscriber's name for the request."""
        self.next_at = 0.0
        self.started = False
        self.queued = False
        self.active = True

    @property
    @abstractmethod
    def has_news(self) -> bool:
        """Whether the subscriber lacks something that is known."""

    @abstractmethod
    def check(self) -> None:
        """Raises ForbiddenError when the consumer may no longer watch what stands there now."""

    @abstractmethod
    def begin(self) -> None:
        """Tells that the subscription is in force; what is known now is delivered next."""

    @abstractmethod
    def deliver(self, snapshot: bool) -> None:
        """Tells what the subscriber lacks; `snapshot` when that is its beginning."""

    @abstractmethod
    def refuse(self, error: RequestError) -> None:
        """Tells that the subscription has ended, and that nothing that it brought may be sent any more."""

    @abstractmethod
    def delay(self) -> None:
        """Tells that the first answer takes long; it will come."""


class AnyWatch(ABC):
    """One key or range that somebody watches: how far it is known, who is to be told, and when it is asked again."""

    __slots__ = (
        "confirmed_at",
        "due",
        "in_flight",
        "insisted",
        "interval",
        "intervals",
        "key",
        "live",
        "position",
        "retired",
        "slot",
        "subscriptions",
        "waiting",
    )

    def __init__(self, key: AnyKey, now: float) -> None:
        self.key: AnyKey = key
        self.position: Position | None = None
        """How far it is known."""
        self.retired: frozenset[int] = frozenset()
        """Epochs that were left: a replica that still answers with one of them is behind."""
        self.insisted = 0
        """How many answers in a row were of retired epochs."""
        self.subscriptions: set[AnySubscription] = set()
        self.waiting: dict[AnySubscription, bool] = {}
        """Those that have not been told what stands there, and whether it has been asked for with regard to them."""
        self.intervals: Counter[float] = Counter()
        self.interval = 0.0
        """The fastest interval that a subscription asks for; 0 keeps it in a long poll."""
        self.in_flight = False
        self.live = False
        """Whether the poller holds a long poll open for it, and so hears of its changes at once."""
        self.due = now
        self.slot = -1
        self.confirmed_at = 0.0
        """When a replica last answered for it."""

    @property
    @abstractmethod
    def is_known(self) -> bool:
        """Whether there has been an answer."""

    @abstractmethod
    def suffices(self, subscription: AnySubscription) -> bool:
        """Whether the subscription can begin with what is known."""

    @abstractmethod
    def ask(self) -> AnyQuestion:
        """What to ask the query service: what is newer than what is known."""

    @abstractmethod
    def accept(self, answer: Any) -> bool:
        """Takes the answer to such a question over unless it is old; returns whether subscribers are to be told."""

    @property
    def is_live(self) -> bool:
        """Whether somebody wants to be told of changes as soon as they are there."""
        return bool(self.subscriptions) and self.interval == 0

    def add(self, subscription: AnySubscription) -> None:
        """Counts the subscription in."""
        self.subscriptions.add(subscription)
        self.intervals[subscription.interval] += 1
        self.interval = min(self.intervals)

    def remove(self, subscription: AnySubscription) -> None:
        """Counts the subscription out."""
        self.subscriptions.discard(subscription)
        self.waiting.pop(subscription, None)
        self.intervals[subscription.interval] -= 1
        if not self.intervals[subscription.interval]:
            del self.intervals[subscription.interval]
            self.interval = min(self.intervals, default=0.0)

    def confirm(self) -> None:
        """A replica of the epoch in which it is known has answered."""
        self.insisted = 0

    def advance(self, position: Position) -> None:
        """A replica has answered that nothing is newer through this position."""
        if self.position is not None and self.position.epoch == position.epoch:
            self.position = max(self.position, position)

    def is_behind(self, epoch: int) -> bool:
        """Whether an answer of this epoch comes from a replica that is behind.

        Epochs have no order, so one may be left by mistake: a retired epoch must be right after all when it insists.
        """
        if epoch not in self.retired:
            return False
        self.insisted += 1
        return self.insisted < INSISTENCE

    def enter_epoch(self, epoch: int) -> None:
        """What is known is of another epoch, which is left for this one."""
        if self.position is not None:
            self.retired = (self.retired | {self.position.epoch}) - {epoch}
