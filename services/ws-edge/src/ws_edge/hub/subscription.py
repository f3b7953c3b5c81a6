"""One consumer's interest in one key, and all interest in that key together."""

from __future__ import annotations

from typing import Any, Protocol

from ws_edge.authorization import Consumer, check_row
from ws_edge.errors import RequestError
from ws_edge.hub.interest import AnySubscription, AnyWatch
from ws_edge.querying.questions import Question, question
from ws_edge.states import Position, StoreKey, Version, is_news


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


class Subscription(AnySubscription):
    """One subscriber's watching of one key."""

    __slots__ = ("subscriber",)
    watch: Watch

    def __init__(
        self,
        watch: Watch,
        subscriber: Subscriber,
        consumer: Consumer,
        after: Position | None,
        interval: float,
        reference: str = "",
    ) -> None:
        super().__init__(watch, consumer, after, interval, reference)
        self.subscriber = subscriber

    @property
    def has_news(self) -> bool:
        """See AnySubscription."""
        return self.watch.latest is not None and self.lacks(self.watch.latest)

    def lacks(self, version: Version) -> bool:
        """Whether the subscriber must still be told the version: this is what keeps state from going backwards."""
        known, needed = self.position, version.unchanged_since or version.position
        return known is None or known.epoch != needed.epoch or known.offset < needed.offset

    def check(self) -> None:
        """See AnySubscription."""
        if self.watch.latest is not None:
            check_row(self.consumer, self.watch.latest)

    def begin(self) -> None:
        """See AnySubscription."""
        after, latest = self.position, self.watch.latest
        recovered = after is not None and latest is not None and after.epoch == latest.position.epoch
        self.subscriber.started(self, recovered)

    def deliver(self, snapshot: bool) -> None:
        """See AnySubscription."""
        if self.watch.latest is not None:
            self.position = self.watch.latest.position
            self.subscriber.changed(self, self.watch.latest, snapshot)

    def refuse(self, error: RequestError) -> None:
        """See AnySubscription."""
        self.subscriber.refused(self, error)

    def delay(self) -> None:
        """See AnySubscription."""
        self.subscriber.delayed(self)


class Watch(AnyWatch):
    """One key that somebody watches: what is known of it, who is to be told, and when it is asked for again.

    `position` is the latest version's, or a later one at which there was still no row.
    """

    __slots__ = ("_question", "latest")
    key: StoreKey

    def __init__(self, key: StoreKey, now: float) -> None:
        super().__init__(key, now)
        self.latest: Version | None = None
        self._question: Question | None = None

    @property
    def is_known(self) -> bool:
        """See AnyWatch."""
        return self.latest is not None

    def suffices(self, _: AnySubscription) -> bool:
        """See AnyWatch: the latest version is where any subscription begins."""
        return self.latest is not None

    def ask(self) -> Question:
        """See AnyWatch. The encoded question is kept while the position stays."""
        self._question = (self._question or question(self.key)).since(self.position)
        return self._question

    def accept(self, answer: Any) -> bool:
        """See AnyWatch: takes a Version over unless it is old, or nothing new."""
        version: Version = answer
        latest, known = self.latest, self.position
        if latest is not None and known is not None:
            if self.is_behind(version.position.epoch):
                return False
            if version.position.epoch != latest.position.epoch:
                self.enter_epoch(version.position.epoch)
            elif version.position <= known or not is_news(latest, version):
                self.confirm()
                self.position = max(known, version.position)
                return False
        self.latest, self.position, self.insisted = version, version.position, 0
        return True
