"""What is known of a key or a range: a key and a range differ in their Content alone."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from typing_extensions import override

from ws_edge.authorization import Consumer, check_row
from ws_edge.hub.watch import Subscription
from ws_edge.states import KeyState, Position, is_news
from ws_edge.upstream.queries import RangeResult

STALE_EPOCH_LIMIT = 3
"""So many answers in a row bring back an epoch that was left."""


@dataclass(slots=True, eq=False)
class Content(ABC):
    """What is known of a key or a range, how answers change it, and what it means to each subscription."""

    position: Position | None = field(default=None, init=False)
    """The position up to which it is known; None when there has been no answer."""
    retired_epochs: frozenset[int] = field(default=frozenset(), init=False)
    """Epochs that were left: a replica that still answers with one of them is behind."""
    stale_answers: int = field(default=0, init=False)
    """How many answers in a row were of retired epochs."""

    def wanted(self, waiting: Iterable[Subscription]) -> tuple[Position | None, bool]:  # noqa: ARG002  a range needs it
        """After which position to ask what is newer, so that those who wait can begin, and whether to ask for all."""
        return self.position, False

    @abstractmethod
    def accept(self, result: KeyState | RangeResult, subscriptions: Collection[Subscription]) -> bool:
        """Takes a result over unless it is old; returns whether it is news for subscriptions."""

    @abstractmethod
    def can_begin(self, after: Position | None) -> bool:
        """Whether a subscription that has everything up to `after` can begin with what is known."""

    @abstractmethod
    def begin(self, subscription: Subscription) -> bool:
        """Begins a subscription with what is known; returns whether its position was accepted."""

    def check(self, consumer: Consumer) -> None:  # noqa: ARG002  a key needs it
        """Raises ForbiddenError when the consumer may not watch what is there; rows of ranges are hidden instead."""
        return

    @abstractmethod
    def has_news_for(self, subscription: Subscription) -> bool:
        """Whether the subscriber lacks something that is known."""

    @abstractmethod
    def deliver(self, subscription: Subscription, snapshot: bool) -> None:
        """Hands the subscriber what it lacks."""

    @abstractmethod
    def position_of(self, subscription: Subscription) -> Position | None:
        """The position up to which everything has been delivered; None when something waits to be taken."""

    def unchanged(self, position: Position | None) -> None:
        """A replica of the current epoch has answered that nothing is newer, up to `position` if it says so."""
        self.stale_answers = 0
        if position is not None and self.position is not None and self.position.epoch == position.epoch:
            self.position = max(self.position, position)

    def _is_stale(self, epoch: int) -> bool:
        """Whether an answer of this epoch comes from a replica that is behind.

        Epochs have no order, so one may be left by mistake: when a retired epoch keeps coming it must be right.
        """
        if epoch not in self.retired_epochs:
            return False
        self.stale_answers += 1
        return self.stale_answers < STALE_EPOCH_LIMIT

    def _enter_epoch(self, epoch: int) -> None:
        if self.position is not None:
            self.retired_epochs = (self.retired_epochs | {self.position.epoch}) - {epoch}


@dataclass(slots=True, eq=False)
class KeyContent(Content):
    """The latest state of a key. `position` is that of the state, or a later one at which there was still no row."""

    latest: KeyState | None = field(default=None, init=False)

    @override
    def accept(self, result: KeyState | RangeResult, subscriptions: Collection[Subscription]) -> bool:
        assert isinstance(result, KeyState)  # noqa: S101  the result of a query for a key
        latest, position = self.latest, self.position
        if latest is not None and position is not None:
            if self._is_stale(result.position.epoch):
                return False
            if result.position.epoch != latest.position.epoch:
                self._enter_epoch(result.position.epoch)
            elif result.position <= position or not is_news(latest, result):
                self.stale_answers = 0
                self.position = max(position, result.position)
                return False
        self.latest, self.position = result, result.position
        self.stale_answers = 0
        return True

    @override
    def can_begin(self, after: Position | None) -> bool:
        return self.latest is not None

    @override
    def begin(self, subscription: Subscription) -> bool:
        after, latest = subscription.after, self.latest
        return after is not None and latest is not None and after.epoch == latest.position.epoch

    @override
    def check(self, consumer: Consumer) -> None:
        if self.latest is not None:
            check_row(consumer, self.latest)

    @override
    def has_news_for(self, subscription: Subscription) -> bool:
        return self.latest is not None and self.latest.is_newer_than(subscription.after)

    @override
    def deliver(self, subscription: Subscription, snapshot: bool) -> None:
        latest = self.latest
        if latest is not None:
            subscription.after = latest.position
            subscription.subscriber.changed(subscription, latest, snapshot)

    @override
    def position_of(self, subscription: Subscription) -> Position | None:
        return subscription.after
