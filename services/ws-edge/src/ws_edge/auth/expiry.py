"""Ends a socket when its access ends, unless that is renewed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import random

from ws_edge.auth.gateway import Credential

MAX_WAIT_S = 3600.0
"""Timers use the monotonic clock, which stands still while a machine sleeps: check the wall clock this often."""

MIN_SHARE = 0.8
"""The smallest share of the longest access. Sockets that were opened together end spread over the rest."""


def expiry_of(credential: Credential, now: float, max_access_s: float, chance: Callable[[], float] = random) -> float:
    """Returns when an access ends: with its credential, or before that, so that the gateway looks at its rights again.

    Times are seconds since 1970; `chance` returns numbers from 0 to below 1.
    """
    end = now + max_access_s * (MIN_SHARE + (1 - MIN_SHARE) * chance())
    return end if credential.expires_at is None else min(end, credential.expires_at)


@dataclass(slots=True, eq=False)
class ExpiryTimer:
    """Calls back once at a point in time. Must be used in the event loop that is to call."""

    wall_clock: Callable[[], float]
    on_expiry: Callable[[], None]
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def renew(self, expires_at: float) -> None:
        """Sets another time, in seconds since 1970."""
        self.cancel()
        wait = min(max(0.0, expires_at - self.wall_clock()), MAX_WAIT_S)
        self._timer = asyncio.get_running_loop().call_later(wait, self._check, expires_at)

    def cancel(self) -> None:
        """Prevents the call back, unless the access is renewed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, expires_at: float) -> None:
        self._timer = None
        if expires_at > self.wall_clock():
            self.renew(expires_at)
        else:
            self.on_expiry()
