"""How far a replica has applied its partition, and for how long it may have been out of date."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

_MAX_END_OFFSETS = 4096


class EndOffset(NamedTuple):
    """The end of a partition: the offset of its next record, and the monotonic time at which the broker was asked."""

    offset: int
    asked_at: float


class Progress:
    """Compares what has been applied with the end offsets of the partition.

    Once everything before an end has been applied, the replica lacks nothing of what there was when that end was asked
    for. `lag_ms` is the time since then: in a steady state the asking interval plus a round trip, with or without
    traffic; it grows when the broker is dead, or when records arrive faster than they are applied.

    The changelog's thread calls `note_applied`, the event loop `note_end_offset`; any thread reads.
    """

    def __init__(self, next_offset: int, caught_up_s: float, monotonic: Callable[[], float]) -> None:
        """Starts at the first offset that has not been applied; serves once the lag has been below `caught_up_s`."""
        self.next_offset = next_offset
        self.serving = False
        self.end_offset: int | None = None
        self._caught_up_s = caught_up_s
        self._monotonic = monotonic
        self._current_at = monotonic()
        self._ends: deque[EndOffset] = deque()
        self._lock = Lock()

    @property
    def applied_offset(self) -> int:
        """The offset of the last record that has been applied; -1 before the first."""
        return self.next_offset - 1

    @property
    def lag_records(self) -> int:
        """The records that are known of and have not been applied."""
        return max(0, (self.end_offset or 0) - self.next_offset)

    @property
    def lag_s(self) -> float:
        """Seconds since the replica last had everything applied; since it was opened, before the first time."""
        return self._monotonic() - self._current_at

    @property
    def lag_ms(self) -> int:
        """`lag_s` in whole milliseconds, rounded up so that it never understates."""
        return int(self.lag_s * 1000) + 1

    def note_applied(self, next_offset: int) -> None:
        """Notes that everything before this offset has been applied."""
        with self._lock:
            self.next_offset = max(self.next_offset, next_offset)
            self._update()

    def note_end_offset(self, offset: int, asked_at: float) -> None:
        """Notes that the partition ended at this offset or later, at a time of the monotonic clock."""
        with self._lock:
            self.end_offset = offset
            if len(self._ends) < _MAX_END_OFFSETS:
                self._ends.append(EndOffset(offset, asked_at))
            self._update()

    def _update(self) -> None:
        while self._ends and self._ends[0].offset <= self.next_offset:
            self._current_at = self._ends.popleft().asked_at
            self.serving = self.serving or self.lag_s <= self._caught_up_s
