"""How many sockets are let in per second: fewer at first, when an edge knows nothing yet and everybody comes back.

Each new socket brings first reads. They are batched and shared, but ten thousand at once would still be one big wave
for the query service. Spread by the pace, and by `Retry-After` for those who are turned away, it is a tide.
"""

from collections.abc import Callable

LOWEST_PART = 0.1
"""The part of the full pace with which an edge begins."""


class Pace:
    """A token bucket of one second's worth, whose rate rises evenly to the full one. Times are monotonic seconds."""

    def __init__(self, per_second: float, warm_up: float, clock: Callable[[], float]) -> None:
        """`warm_up` is how many seconds after the first socket the full pace is reached."""
        self._per_second = per_second
        self._warm_up = warm_up
        self._clock = clock
        self._began: float | None = None
        self._at = 0.0
        self._tokens = 1.0

    def admits(self) -> bool:
        """Whether one more may come in now; if so, it is counted."""
        now = self._clock()
        if self._began is None:
            self._began, self._at = now, now - 1.0
        rate = self._rate(now - self._began)
        self._tokens = min(max(rate, 1.0), self._tokens + (now - self._at) * rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _rate(self, age: float) -> float:
        part = 1.0 if age >= self._warm_up else LOWEST_PART + (1 - LOWEST_PART) * age / self._warm_up
        return self._per_second * part
