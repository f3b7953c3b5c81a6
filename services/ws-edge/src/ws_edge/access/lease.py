"""How long a socket may stay open: until the credential behind it expires, unless it is renewed."""

import asyncio
from collections.abc import Callable

LONGEST_WAIT_S = 3600.0
"""Timers run on another clock than credentials, and stand still while a machine sleeps: look at least so often."""


class Lease:
    """Calls back once when the time is over. Must be used in the event loop that is to call."""

    __slots__ = ("_clock", "_expires_at", "_on_end", "_timer")

    def __init__(self, clock: Callable[[], float], on_end: Callable[[], None]) -> None:
        """`clock` tells seconds since 1970."""
        self._clock = clock
        self._on_end = on_end
        self._expires_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def renew(self, expires_at: float | None) -> None:
        """Sets the end anew, in seconds since 1970; None is never."""
        self.cancel()
        self._expires_at = expires_at
        self._wait()

    def cancel(self) -> None:
        """Calls back no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        if self._expires_at is not None:
            wait = min(max(0.0, self._expires_at - self._clock()), LONGEST_WAIT_S)
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._expires_at is not None and self._expires_at > self._clock():
            self._wait()
        else:
            self._on_end()
