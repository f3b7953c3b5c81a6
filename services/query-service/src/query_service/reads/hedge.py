"""Asks the next replica as well when one is slow, and takes the result that comes first."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from query_service.errors import LookupFailedError
from query_service.metrics import Metrics
from query_service.reads.routed_peer import RoutedPeer

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

    The delay follows peers' times, so that a cluster that is slow altogether is not asked twice; and of all calls
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
        self.monotonic = monotonic

    async def first_of(
        self, kind: str, attempt: Callable[[], Coroutine[Any, Any, Result | None]], peer: RoutedPeer, wait_s: float
    ) -> Result | None:
        """Returns the result of an attempt, or, when that is slow, of whichever of two comes first.

        `attempt` is called once or twice, and asks `peer` first and then the next replica; the loser is cancelled. An
        attempt that returns None has failed, and the other is waited for; None when there is no other left. An attempt
        that raises ends the race. `kind` names calls with comparable times, and `wait_s` is how long the
        query itself may wait.
        """
        if not self._enabled:
            return await attempt()
        self._allowance = min(_BURST, self._allowance + self._share)
        return await _Race(self, self._slow[kind], attempt, peer, wait_s).result()

    def takes_next(self, peer: RoutedPeer) -> bool:
        """Returns whether an overdue call to a peer goes to the next replica now, which uses up some of the share."""
        if not peer.unreachable and self._allowance < 1:
            return False
        self._allowance -= 0 if peer.unreachable else 1
        return True

    def count(self, outcome: str) -> None:
        self._hedges.labels(outcome).inc()


class _Race(Generic[Result]):
    """One call. Its first attempt runs in the caller's task, and only one that is overdue costs a second task.

    When the second attempt ends the race, it cancels the first as asyncio.timeout does: by cancelling the caller's
    task; this cancellation ends here.
    """

    __slots__ = (
        "_attempt", "_began", "_due", "_hedging", "_is_overtaken", "_is_refused", "_left_s", "_peer", "_second",
        "_slow", "_task", "_timer", "_wait_s",
    )  # fmt: skip

    def __init__(
        self,
        hedging: Hedging,
        slow: SlowestResults,
        attempt: Callable[[], Coroutine[Any, Any, Result | None]],
        peer: RoutedPeer,
        wait_s: float,
    ) -> None:
        self._hedging = hedging
        self._slow = slow
        self._attempt = attempt
        self._peer = peer
        self._wait_s = wait_s
        self._began = hedging.monotonic()
        self._left_s = wait_s + slow.after_s
        self._due = self._began + self._left_s
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._second: asyncio.Task[Result | None] | None = None
        self._is_refused = False
        self._is_overtaken = False

    async def result(self) -> Result | None:
        try:
            result = await self._first()
            if self._second is None:
                return result
            outcome = "lost"
            if result is None:
                result, outcome = await self._second, "won"
            if result is not None:
                self._hedging.count(outcome)
            return result
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._second is not None:
                self._second.cancel()
                await asyncio.gather(self._second, return_exceptions=True)

    async def _first(self) -> Result | None:
        """Returns the result of the first attempt; None when it has failed, or the second has ended the race."""
        task = self._task = asyncio.current_task()
        assert task is not None  # noqa: S101  coroutines run in tasks
        cancelling = task.cancelling()
        self._set_timer(min(self._left_s, _CHECK_INTERVAL_S), self._look)
        try:
            result = await self._attempt()
        except asyncio.CancelledError:
            if not self._is_overtaken or task.uncancel() > cancelling:
                raise
            return None
        except LookupFailedError:
            self._note_first()
            raise
        finally:
            self._task = None
        self._note_first()
        return result

    def _note_first(self) -> None:
        if self._second is None and not self._wait_s:
            self._slow.note(self._hedging.monotonic() - self._began)

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _look(self) -> None:
        """Waits until the call is due; a long poll waits for no dead peer."""
        self._left_s = 0.0 if self._peer.unreachable else self._left_s - _CHECK_INTERVAL_S
        if self._left_s > 0:
            self._set_timer(min(self._left_s, _CHECK_INTERVAL_S), self._look)
        else:
            self._decide()

    def _decide(self) -> None:
        """Asks the next replica as well, or waits once more."""
        now, peer = self._hedging.monotonic(), self._peer
        in_time = now < self._due + self._slow.after_s  # else this loop stood still, and has heard no peer
        if in_time and peer.silent_since(self._began + self._wait_s):
            peer.failed(None)
        if self._hedging.takes_next(peer):
            self._slow.note(self._slow.max_s)
            self._second = asyncio.get_running_loop().create_task(self._attempt())
            self._second.add_done_callback(self._second_ended)
            return
        if not self._is_refused:
            self._is_refused = True
            self._hedging.count("refused")
        self._due = now + self._slow.after_s
        self._set_timer(self._slow.after_s, self._decide)

    def _second_ended(self, second: "asyncio.Task[Result | None]") -> None:
        """Cancels the first attempt, unless the second has failed: then the first keeps its time."""
        if self._task is None or second.cancelled():
            return
        if second.exception() is not None or second.result() is not None:
            self._is_overtaken = True
            self._task.cancel()
