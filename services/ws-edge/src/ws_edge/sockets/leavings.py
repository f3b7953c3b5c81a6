"""Collects what closed sockets leave behind, and looks for garbage seldom otherwise.

The parts of a socket refer to each other, so only Python's collector of cycles frees them. Left to itself it looks at
every open socket again and again, 0.3 to 0.4 s at 5,000 of them, in which nobody is told anything, and finds nothing.
"""

import asyncio
import gc
from typing import Protocol

SELDOM = (20_000, 50, 50)
"""After how many new objects the young are looked at, and how many such looks later the older and the oldest."""

LEAST = 1_000
"""So many sockets have closed, at the least, when all that is there is looked at."""

PAUSE_S = 1.0


class Counted(Protocol):
    """Tells how many sockets are open, and how many have closed since the start."""

    closed: int

    def __len__(self) -> int: ...


def collect_seldom() -> None:
    """Leaves what the process has at its start alone for good, and looks for garbage seldom from now on."""
    gc.freeze()
    gc.set_threshold(*SELDOM)


class Leavings:
    """What closed sockets hold is at most what the open ones do, or LEAST of them, and a second's worth."""

    def __init__(self, sockets: Counted) -> None:
        self._sockets = sockets
        self._collected = 0

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            await asyncio.sleep(PAUSE_S)
            self.collect()

    def collect(self) -> None:
        """Looks at everything when as many sockets have closed since the last time as are open."""
        closed = self._sockets.closed
        if closed - self._collected >= max(LEAST, len(self._sockets)):
            gc.collect()
            self._collected = closed
