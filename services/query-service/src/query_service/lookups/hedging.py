"""Asks the next replica as well when one is slow, and takes the result that comes first."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from query_service.lookups.routed_peer import RoutedPeer
from query_service.metrics import Metrics

_BURST = 10.0
_CHECK_INTERVAL_S = 0.5
_QUANTILE = 0.95
_GAIN = 0.1

Result = TypeVar("Result")


class SlowestResults:
    """A running estimate of the 95th percentile of the times that results take, in constant space.

    Each time above the estimate raises it by a good part, each other lowers it by a small one; they balance where one
    time in twenty is above. It forgets as it goes, within some hundred results, and stays between the two bounds.
    """

    def __init__(self, min_s: float, max_s: float) -> None:
        self.after_s = min_s
        self.max_s = max_s
        self._min_s = min_s

    def note(self, seconds: float) -> None:
        change = _QUANTILE if seconds > self.after_s else _QUANTILE - 1
        self.after_s = min(self.max_s, max(self._min_s, self.after_s * (1 + _GAIN * change)))


class Hedging:
    """Hedges a call that takes longer than 95 of 100 of its kind, but not before `after_s`, and never when that is 0.

    The delay follows what peers take, so that a cluster that is slow altogether is not asked twice; and of all calls
    only `share` are hedged, beyond a burst of ten, so that an overload is not doubled. Both bounds are for peers that
    are slow. One that has not answered any call since this one began is taken for dead: all its calls go to the next
    replica at once, and the peer is asked last until it answers a probe.
    """

    def __init__(
        self, after_s: float, max_s: float, share: float, metrics: Metrics, monotonic: Callable[[], float]
    ) -> None:
        self._enabled = after_s > 0
        self._slow = defaultdict[str, SlowestResults](lambda: SlowestResults(after_s, max(after_s, max_s)))
        self._share = share
        self._allowance = _BURST
        self._hedges = metrics.hedges
        self._monotonic = monotonic

    async def first_of(
        self, kind: str, attempt: Callable[[], Awaitable[Result | None]], peer: RoutedPeer, wait_s: float
    ) -> Result | None:
        """Returns the result of an attempt, or, when that is slow, of whichever of two comes first.

        `attempt` is called once or twice, and asks `peer` first and then the next replica; the loser is cancelled. An
        attempt that returns None has failed, and the other is waited for; None when there is no other left. An attempt
        that raises ends the race. `kind` names the calls whose times are comparable, and `wait_s` is how long the
        query itself may wait.
        """
        if not self._enabled:
            return await attempt()
        self._allowance = min(_BURST, self._allowance + self._share)
        attempts = [asyncio.ensure_future(attempt())]
        try:
            if not await self._overdue(attempts[0], self._slow[kind], peer, wait_s):
                return attempts[0].result()
            attempts.append(asyncio.ensure_future(attempt()))
            return await self._race(attempts)
        finally:
            for task in attempts:
                task.cancel()
            if len(attempts) > 1:
                await asyncio.gather(*attempts, return_exceptions=True)

    async def _overdue(
        self, attempt: "asyncio.Future[Result | None]", slow: SlowestResults, peer: RoutedPeer, wait_s: float
    ) -> bool:
        began = self._monotonic()
        due = began + wait_s + slow.after_s
        left_s = wait_s + slow.after_s
        while left_s > 0 and not attempt.done():
            await asyncio.wait((attempt,), timeout=min(left_s, _CHECK_INTERVAL_S))
            left_s = 0.0 if peer.unreachable else left_s - _CHECK_INTERVAL_S  # a long poll waits for no dead peer
        refused = False
        while not attempt.done():
            in_time = self._monotonic() < due + slow.after_s  # else this loop stood still, and has heard no peer
            if in_time and peer.silent_since(began + wait_s):
                peer.failed(None)
            if peer.unreachable or self._allowance >= 1:
                self._allowance -= 0 if peer.unreachable else 1
                slow.note(slow.max_s)
                return True
            if not refused:
                refused = True
                self._hedges.labels("refused").inc()
            due = self._monotonic() + slow.after_s
            await asyncio.wait((attempt,), timeout=slow.after_s)
        if not wait_s:
            slow.note(self._monotonic() - began)
        return False

    async def _race(self, attempts: "Sequence[asyncio.Future[Result | None]]") -> Result | None:
        pending = set(attempts)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (result := task.result()) is not None:
                    self._hedges.labels("lost" if task is attempts[0] else "won").inc()
                    return result
        return None
