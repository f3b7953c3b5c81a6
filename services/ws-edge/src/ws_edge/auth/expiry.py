"""Ends a socket when the credential behind it expires, unless it is renewed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_WAIT_S = 3600.0
"""Timers use the monotonic clock, which stands still while a machine sleeps: check the wall clock this often."""


@dataclass(slots=True, eq=False)
class ExpiryTimer:
    """Calls back once at a point in time. Must be used in the event loop that is to call."""

    wall_clock: Callable[[], float]
    on_expiry: Callable[[], None]
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def renew(self, expires_at: float | None) -> None:
        """Sets another time, in seconds since 1970; None means never."""
        self.cancel()
        if expires_at is not None:
            wait = min(max(0.0, expires_at - self.wall_clock()), MAX_WAIT_S)
            self._timer = asyncio.get_running_loop().call_later(wait, self._check, expires_at)

    def cancel(self) -> None:
        """Never calls back, unless it is renewed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, expires_at: float) -> None:
        self._timer = None
        if expires_at > self.wall_clock():
            self.renew(expires_at)
        else:
            self.on_expiry()
