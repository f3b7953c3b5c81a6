"""The pace at which sockets are opened, and left when the edge stops."""

import asyncio
from collections import deque
from collections.abc import Callable

from ws_edge.errors import BusyError

TICK_S = 0.02
"""How often the line of handshakes moves."""

BURST_S = 0.1
"""So many seconds' worth of sockets may be opened at once."""

MAX_WAIT_S = 5.0
"""How long a handshake is held until it may open its socket, else it is refused; clients wait for ten seconds."""


class Pace:
    """Opens sockets in the order of their handshakes, `per_second` of them, or as many as the machine can.

    When everybody reconnects, each new socket brings first reads. They are batched and shared, but ten thousand at once
    would be one big wave for the query service, and leave other clients waiting: the pace spreads them. Handshakes are
    held in line, because one that is refused comes back, and costs as much again.

    The line moves by a timer of the event loop, which is late while the loop is busy with the sockets opened before. A
    machine that cannot keep the pace would otherwise begin all handshakes at once, finish them when their clients have
    given up, and so be busy with those for good.
    """

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        """`clock` returns monotonic seconds."""
        self.per_second = per_second
        self._clock = clock
        self._tick_s = max(TICK_S, 1 / per_second)
        self._step = max(1, round(per_second * self._tick_s))
        self._burst = max(1, round(per_second * BURST_S))
        self._free = self._burst
        """How many may be opened without a wait."""
        self._opened = 0
        """How many have been opened since the last tick."""
        self._line: deque[tuple[float, asyncio.Future[None]]] = deque()
        """The places in line, and when each was taken."""
        self._moved_at: float | None = None
        """The time of the last tick; None while the timer rests."""
        self._rate = per_second
        """How many sockets a second could be opened during the last second or so."""
        self._turned_away = 0.0
        """How many that were refused have not come back yet, as far as the opened ones tell."""

    def turn(self) -> "asyncio.Future[None] | None":
        """Returns None when a socket may be opened now, else a place in line; who leaves the line cancels it.

        It raises BusyError after MAX_WAIT_S, or at once if one would wait longer at the full pace.
        """
        loop = asyncio.get_running_loop()
        if self._moved_at is None:
            self._moved_at = self._clock()
            loop.call_later(self._tick_s, self._move)
        if self._free and not self._line:
            self._open()
            return None
        turn = loop.create_future()
        if len(self._line) < self.per_second * MAX_WAIT_S - 1:
            self._line.append((self._clock(), turn))
        else:
            self._refuse(turn)
        return turn

    def _move(self) -> None:
        now = self._clock()
        elapsed_s = max(now - (self._moved_at or 0.0), self._tick_s)
        possible = min(max(self._opened, self._step) / elapsed_s, self.per_second)
        self._rate += (possible - self._rate) * min(1.0, elapsed_s)
        self._turned_away = max(0.0, self._turned_away - self._opened)
        self._free, self._opened = min(self._free + self._step, self._burst), 0
        while self._free and self._line:
            if not (turn := self._line.popleft()[1]).done():
                turn.set_result(None)
                self._open()
        self._refuse_until(now - MAX_WAIT_S)
        is_idle = self._free == self._burst
        self._moved_at = None if is_idle else now
        if is_idle:
            self._rate = self.per_second
        else:
            asyncio.get_running_loop().call_later(self._tick_s, self._move)

    def _open(self) -> None:
        self._free -= 1
        self._opened += 1

    def _refuse_until(self, time: float) -> None:
        """Refuses all who came before the time: they come back while those behind them are let in."""
        while self._line and self._line[0][0] <= time:
            if not (turn := self._line.popleft()[1]).done():
                self._refuse(turn)

    def _refuse(self, turn: "asyncio.Future[None]") -> None:
        self._turned_away += 1
        text = "too many sockets are being opened at this edge: connect again later"
        turn.set_exception(BusyError(text, "pace", self._turned_away / self._rate))


def departures(count: int, per_second: float, longest_s: float) -> list[float]:
    """Returns when each of `count` sockets is to leave, in seconds after the first.

    They leave as fast as another edge opens sockets, and within `longest_s`.
    """
    span = min(longest_s, count / per_second)
    return [span * index / count for index in range(count)]
