"""The machine's clocks, and the types by which parts take a clock as an argument."""

import time
from collections.abc import Callable

MonotonicClock = Callable[[], float]
"""Seconds since some fixed moment; they never go backwards. `time.monotonic` is the real one."""

WallClock = Callable[[], float]
"""Seconds since 1970 UTC; they may jump. `time.time` is the real one."""


def wall_ms() -> int:
    """Returns the wall clock's time in milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def wall_us() -> int:
    """Returns the wall clock's time in microseconds since 1970 UTC."""
    return time.time_ns() // 1_000
