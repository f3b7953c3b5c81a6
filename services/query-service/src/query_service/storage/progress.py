"""Tells how far a replica has applied its partition, and how old that may be, as every result says it."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

_MAX_END_OFFSETS = 4096


Time = tuple[int, int]
"""Seconds and nanoseconds since the beginning of 1970, UTC."""


class Freshness(NamedTuple):
    """How old a result may be that was read after this was taken, and which instance gave it."""

    partition: int
    lag_records: int
    lag_ms: int
    epoch: int
    applied_offset: int
    answered_by: str


class EndOffset(NamedTuple):
    """The end of a partition: the offset of its next record, and the monotonic time at which the broker was asked."""

    offset: int
    asked_at: float


class Progress:
    """Compares the applied offset with the end offsets of the partition.

    Once everything before an end has been applied, the replica lacks no record that was there when that end was asked
    for. `lag_ms` is the time since then: in a steady state the asking interval plus a round trip, with or without
    traffic; it grows when the broker is dead, when records arrive faster than they are applied, or when they wait
    behind an open transaction.

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
        self._held_back_at: float | None = None
        self._ends: deque[EndOffset] = deque()
        self._lock = Lock()

    @property
    def applied_offset(self) -> int:
        """The offset of the last record that has been applied; -1 before the first."""
        return self.next_offset - 1

    @property
    def lag_records(self) -> int:
        return max(0, (self.end_offset or 0) - self.next_offset)

    @property
    def lag_s(self) -> float:
        """Seconds since the replica last had everything applied; since it was opened, before the first time.

        If the replica serves although it was already held back before it was opened, they count from that time.
        """
        held_back_at, current_at = self._held_back_at, self._current_at
        return self._monotonic() - (current_at if held_back_at is None else min(held_back_at, current_at))

    @property
    def unread_ms(self) -> int:
        """Whole milliseconds since this replica, as long as it is open, last had read everything."""
        return int((self._monotonic() - self._current_at) * 1000) + 1

    @property
    def lag_ms(self) -> int:
        """`lag_s` in whole milliseconds, rounded up so that it never understates."""
        return int(self.lag_s * 1000) + 1

    def measure(self) -> tuple[int, int, int]:
        """Returns `lag_records`, `lag_ms` and `applied_offset`; each read needs all three, and calls nothing else."""
        next_offset, end_offset, held_back_at, current_at = (
            self.next_offset, self.end_offset, self._held_back_at, self._current_at
        )  # fmt: skip
        if held_back_at is not None and held_back_at < current_at:
            current_at = held_back_at
        lag_records = 0 if end_offset is None or end_offset < next_offset else end_offset - next_offset
        return lag_records, int((self._monotonic() - current_at) * 1000) + 1, next_offset - 1

    def note_applied(self, next_offset: int) -> None:
        with self._lock:
            self.next_offset = max(self.next_offset, next_offset)
            self._update()

    def note_end_offset(self, offset: int, asked_at: float) -> None:
        """Notes that the partition ended at this offset or later, at a time of the monotonic clock.

        An earlier end that is no lower says less; a log that has lost its last records never reaches it again.
        """
        with self._lock:
            self.end_offset = offset
            while self._ends and self._ends[-1].offset >= offset:
                self._ends.pop()
            if len(self._ends) < _MAX_END_OFFSETS:
                self._ends.append(EndOffset(offset, asked_at))
            self._update()

    def note_held_back(self, since_s: float) -> None:
        """Serves the readable rows, although records wait behind an open transaction: for `since_s` seconds at most."""
        with self._lock:
            if not self.serving:
                self._held_back_at = self._monotonic() - since_s
                self.serving = True

    def _update(self) -> None:
        while self._ends and self._ends[0].offset <= self.next_offset:
            self._current_at = self._ends.popleft().asked_at
            self._held_back_at = None
            self.serving = self.serving or self.lag_s <= self._caught_up_s
