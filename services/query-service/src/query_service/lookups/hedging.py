"""Asks the next replica as well when one is slow, and takes the answer that comes first."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from query_service.lookups.slow_answers import SlowAnswers
from query_service.metrics import Metrics

_BURST = 10.0
_LOOK_S = 0.5

Answer = TypeVar("Answer")


class SlowPeer(Protocol):
    """The peer that was asked first; see PeerMemory for the methods."""

    @property
    def unreachable(self) -> bool:
        """See PeerMemory."""

    def silent_since(self, time: float) -> bool:
        """See PeerMemory."""

    def failed(self, shard: tuple[str, int] | None) -> None:
        """See PeerMemory."""


class Hedging:
    """Hedges a call that takes longer than 95 of 100 calls of its kind, and never earlier than `after_s`.

    The delay follows what peers take, so that a cluster that is slow altogether is not asked twice; and of all calls
    only `share` are hedged, beyond a burst of ten, so that an overload is not doubled. Both bounds are for peers that
    are slow. One that has answered nobody since the call began is taken for dead: all its calls go to the next replica
    at once, and the peer is asked last until it answers a probe.
    """

    def __init__(
        self, after_s: float, most_s: float, share: float, metrics: Metrics, monotonic: Callable[[], float]
    ) -> None:
        """Never hedges when `after_s` is 0; the delay is never above `most_s`."""
        self._enabled = after_s > 0
        self._slow = defaultdict[str, SlowAnswers](lambda: SlowAnswers(after_s, max(after_s, most_s)))
        self._share = share
        self._allowance = _BURST
        self._hedges = metrics.hedges
        self._monotonic = monotonic

    async def first_of(
        self, kind: str, attempt: Callable[[], Awaitable[Answer | None]], peer: SlowPeer, patience_s: float
    ) -> Answer | None:
        """Returns the answer of an attempt, or, when that is slow, of whichever of two comes first.

        `attempt` is called once or twice, and asks `peer` first and then the next replica; who loses is cancelled. An
        attempt that returns None has failed, and the other is waited for; None when there is no other left. An attempt
        that raises ends the race. `kind` names the calls whose times are comparable, and `patience_s` is how long the
        question itself may wait.
        """
        if not self._enabled:
            return await attempt()
        self._allowance = min(_BURST, self._allowance + self._share)
        attempts = [asyncio.ensure_future(attempt())]
        try:
            if not await self._overdue(attempts[0], self._slow[kind], peer, patience_s):
                return attempts[0].result()
            attempts.append(asyncio.ensure_future(attempt()))
            return await self._race(attempts)
        finally:
            for each in attempts:
                each.cancel()
            if len(attempts) > 1:
                await asyncio.gather(*attempts, return_exceptions=True)

    async def _overdue(
        self, attempt: "asyncio.Future[Answer | None]", slow: SlowAnswers, peer: SlowPeer, patience_s: float
    ) -> bool:
        began = self._monotonic()
        due = began + patience_s + slow.after_s
        await _done_or_unreachable(attempt, peer, patience_s + slow.after_s)
        refused = False
        while not attempt.done():
            in_time = self._monotonic() < due + slow.after_s  # else this loop stood still, and has heard nobody
            if in_time and peer.silent_since(began + patience_s):
                peer.failed(None)
            if peer.unreachable or self._take():
                slow.note(slow.most_s)
                return True
            if not refused:
                refused = True
                self._hedges.labels("refused").inc()
            due = self._monotonic() + slow.after_s
            await asyncio.wait((attempt,), timeout=slow.after_s)
        if not patience_s:
            slow.note(self._monotonic() - began)
        return False

    async def _race(self, attempts: "Sequence[asyncio.Future[Answer | None]]") -> Answer | None:
        pending = set(attempts)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                answer = each.result()
                if answer is not None:
                    self._hedges.labels("lost" if each is attempts[0] else "won").inc()
                    return answer
        return None

    def _take(self) -> bool:
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


async def _done_or_unreachable(attempt: "asyncio.Future[Answer | None]", peer: SlowPeer, left_s: float) -> None:
    """Waits for an attempt; a question that may wait for long does not wait for a peer that others found dead."""
    while left_s > 0 and not attempt.done():
        await asyncio.wait((attempt,), timeout=min(left_s, _LOOK_S))
        if peer.unreachable:
            return
        left_s -= _LOOK_S
