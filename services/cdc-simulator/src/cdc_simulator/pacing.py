"""The clock that the simulator goes by, and the pace that spreads changes evenly over its time."""

import time

MAX_BEHIND_S = 0.25
MIN_WAIT_S = 0.02
MAX_WAIT_S = 0.25


class Clock:
    """The machine's own clocks: the wall clock may go backwards, the monotonic one has no fixed beginning."""

    def now_us(self) -> int:
        """Returns microseconds since 1970 UTC."""
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Pace:
    """Counts the changes that are due. Drops those that are more than a quarter second late instead of catching up."""

    def __init__(self, rate: float, now_s: float) -> None:
        """`rate` is in changes a second, `now_s` a monotonic time in seconds, as in all calls."""
        self._rate = rate
        self._max_due = 1 + rate * MAX_BEHIND_S
        self._due = 0.0
        self._at_s = now_s

    def take(self, now_s: float, at_most: int) -> int:
        """Returns how many changes to make now, and counts them as made. Drops all due changes if `at_most` is 0."""
        self._due = min(self._max_due, self._due + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if at_most <= 0:
            self._due = 0.0
            return 0
        taken = min(int(self._due), at_most)
        self._due -= taken
        return taken

    def wait_s(self, now_s: float) -> float:
        """Returns for how long nothing new is worth doing: 0 when changes are left over, else 20 to 250 ms."""
        if self._due >= 1:
            return 0.0
        if self._rate == 0:
            return MAX_WAIT_S
        until_due_s = (1 - self._due) / self._rate - (now_s - self._at_s)
        return min(MAX_WAIT_S, max(MIN_WAIT_S, until_due_s))
