"""The clocks that the simulator goes by."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now_us(self) -> int:
        """Returns the wall clock's time in microseconds since 1970 UTC; it may go backwards."""

    def monotonic_s(self) -> float:
        """Returns seconds since some fixed moment; they never go backwards."""

    def sleep(self, seconds: float) -> None:
        """Returns after so many seconds."""


class SystemClock:
    """The machine's own clocks."""

    def now_us(self) -> int:
        """As Clock has it."""
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        """As Clock has it."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """As Clock has it."""
        time.sleep(seconds)
