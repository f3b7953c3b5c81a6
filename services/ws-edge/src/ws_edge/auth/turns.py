"""Shares the event loop: who holds it long gets a fifth of its time, and all of it while nobody else needs any."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ws_edge.auth.quotas import TokenBucket, TokenBuckets

T = TypeVar("T")

SHARE = 0.2
"""The part of the loop's time that one customer's calls and large snapshots get while others are active."""
SHARE_OF_ALL = 0.8
"""The part that those of all customers get together; the rest is left to the frames of sockets."""
BURST_S = 0.005
"""So many seconds may be taken at once: a few small calls."""
STEP_S = 0.001
"""How long a step is expected to take: it is paid in advance, so that steps of one time stand in line."""
ACTIVE_S = 1.0
"""How long a customer counts as active after it was served."""


@dataclass(eq=False)
class Turns:
    """Counts for how long each customer holds the loop, and lets it wait once that is more than its share."""

    clock: Callable[[], float]
    on_wait: Callable[[float], None] = lambda _: None
    """Takes for how many seconds somebody waits."""
    _latest: str = field(default="", init=False)
    """The customer that was served last."""
    _latest_at: float = field(default=0.0, init=False)
    _other_at: float = field(default=0.0, init=False)
    """When a customer other than the latest was served."""
    _own: TokenBuckets = field(init=False)
    _all: TokenBucket = field(init=False)

    def __post_init__(self) -> None:
        now = self.clock()
        self._latest_at = self._other_at = now - ACTIVE_S
        self._own, self._all = TokenBuckets(SHARE, BURST_S, self.clock), TokenBucket(SHARE_OF_ALL, BURST_S, now)

    def serve(self, customer: str, now: float) -> None:
        """Notes that the customer is served now: others leave it time for a while."""
        if customer != self._latest:
            self._latest, self._other_at = customer, self._latest_at
        self._latest_at = now

    async def rest(self, customer: str, held_s: float) -> None:
        """Counts for how long the customer has held the loop, and leaves it to others for as long as it owes."""
        if (wait_s := self.pay(customer, held_s)) > 0:
            self.on_wait(wait_s)
            await asyncio.sleep(wait_s)

    def pay(self, customer: str, held_s: float) -> float:
        """Counts the same; returns for how many seconds the customer is to wait."""
        now = self.clock()
        if now - (self._other_at if customer == self._latest else self._latest_at) >= ACTIVE_S:
            return 0.0
        return max(bucket.pay(held_s, now) for bucket in (self._own.of(customer), self._all))

    @types.coroutine
    def take(self, customer: str, call: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Runs a call of a customer. Each step, up to an await that gives others their turn, waits to be paid."""
        self.serve(customer, self.clock())
        resume: Callable[[], Any] = partial(call.send, None)
        while True:
            try:
                yield from self.rest(customer, STEP_S).__await__()
            except BaseException as error:  # noqa: BLE001  the call handles its end
                resume = partial(call.throw, error)
            began = self.clock()
            try:
                awaited = resume()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.pay(customer, self.clock() - began - STEP_S)
            try:
                yield awaited
                resume = partial(call.send, None)
            except BaseException as error:  # noqa: BLE001  as above
                resume = partial(call.throw, error)
