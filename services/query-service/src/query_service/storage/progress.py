"""How far a replica of one partition is, and since when it may be out of date."""

from collections import deque
from collections.abc import Callable
from threading import Lock

_MOST_ENDS = 4096


class Progress:
    """Follows what has been applied against the ends of the topic that were seen.

    The end of the topic is read every `end_offsets_interval_ms`. Once everything before an end has been applied, the
    replica knows that at the time it asked for that end, it now lacks nothing of what there was. `lag_ms` is the age
    of the newest such knowledge: in a steady state the asking interval plus a round trip, with or without traffic;
    when the broker is dead, or records arrive faster than they are applied, it grows.

    The changelog's thread calls `applied`, the thread that reads the ends calls `saw_end`, any thread reads.
    """

    def __init__(self, next_offset: int, caught_up_s: float, monotonic: Callable[[], float]) -> None:
        """Starts at the first offset that has not been applied; serves once the lag has been below `caught_up_s`."""
        self.next_offset = next_offset
        self.serving = False
        self.end_offset: int | None = None
        self._caught_up_s = caught_up_s
        self._monotonic = monotonic
        self._since = monotonic()
        self._current_at: float | None = None
        self._ends: deque[tuple[int, float]] = deque()
        self._lock = Lock()

    @property
    def current_through(self) -> int:
        """The offset of the last record that has been applied; -1 before the first."""
        return self.next_offset - 1

    @property
    def lag_records(self) -> int:
        """The records that are known of and have not been applied."""
        return max(0, (self.end_offset or 0) - self.next_offset)

    @property
    def lag_s(self) -> float:
        """Seconds since the replica last knew that it had applied everything; since it was opened, before the first."""
        current_at = self._current_at
        return self._monotonic() - (self._since if current_at is None else current_at)

    @property
    def lag_ms(self) -> int:
        """`lag_s` in whole milliseconds, rounded up so that it never understates."""
        return int(self.lag_s * 1000) + 1

    def applied(self, next_offset: int) -> None:
        """Notes that everything before this offset has been applied."""
        with self._lock:
            self.next_offset = max(self.next_offset, next_offset)
            self._settle()

    def saw_end(self, end_offset: int, asked_at: float) -> None:
        """Notes that the topic's end was at least this when it was asked for, at a time of the monotonic clock."""
        with self._lock:
            self.end_offset = end_offset
            if len(self._ends) < _MOST_ENDS:
                self._ends.append((end_offset, asked_at))
            self._settle()

    def _settle(self) -> None:
        while self._ends and self._ends[0][0] <= self.next_offset:
            self._current_at = self._ends.popleft()[1]
        if not self.serving and self._current_at is not None and self.lag_s <= self._caught_up_s:
            self.serving = True
