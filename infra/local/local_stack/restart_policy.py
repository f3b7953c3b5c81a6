"""Decides whether and when a process that ended is started again."""

from collections import deque


class RestartPolicy:
    """Doubles the pause from `first_s` up to `most_s`; gives up at `limit` ends within `window_s` seconds."""

    def __init__(self, first_s: float, most_s: float, limit: int, window_s: float) -> None:
        self.first_s = first_s
        self.most_s = most_s
        self.limit = limit
        self.window_s = window_s
        self._ends: deque[float] = deque()

    def pause_after_end(self, now: float) -> float | None:
        """Counts an end at `now` (seconds) and returns the pause before the next start; None to give up."""
        self._ends.append(now)
        while self._ends[0] <= now - self.window_s:
            self._ends.popleft()
        if len(self._ends) >= self.limit:
            return None
        return float(min(self.most_s, self.first_s * 2 ** (len(self._ends) - 1)))
