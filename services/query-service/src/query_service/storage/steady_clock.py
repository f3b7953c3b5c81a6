"""The wall clock by which rows and deletions grow old, which does not follow a step ahead at once."""

from collections.abc import Callable

import structlog

_MAX_STEP_MS = 60_000
_AHEAD = "the system's clock has jumped ahead; it counts for the age of rows once it has stayed there"

_log = structlog.get_logger()


class SteadyClock:
    """Tells the time in milliseconds since 1970. Any thread may call.

    A clock that is ahead for a moment would make rows too old: they would be hidden, and purged for good. So a step
    ahead of more than a minute counts once it has lasted for `lasting_s`. A step back counts at once: rows that are
    younger for a while lose nothing.
    """

    def __init__(self, wall_ms: Callable[[], int], monotonic: Callable[[], float], lasting_s: float) -> None:
        """`monotonic` should also count while the machine is suspended, which is no step then."""
        self._wall_ms = wall_ms
        self._monotonic = monotonic
        self._lasting_s = lasting_s
        self._began = monotonic()
        self._offset_ms = wall_ms() - int(self._began * 1000)
        self._ahead_since: float | None = None

    @property
    def is_proven(self) -> bool:
        """Whether it has run for `lasting_s`: at the start nobody knows whether the system's clock is ahead."""
        return self._monotonic() - self._began >= self._lasting_s

    def __call__(self) -> int:
        now = self._monotonic()
        now_ms, since = int(now * 1000), self._ahead_since
        offset_ms = self._wall_ms() - now_ms
        if offset_ms - self._offset_ms > _MAX_STEP_MS:
            if since is None:
                since = self._ahead_since = now
                _log.warning(_AHEAD, ahead_s=(offset_ms - self._offset_ms) // 1000, counts_after_s=self._lasting_s)
            if now - since < self._lasting_s:
                return now_ms + self._offset_ms
        self._offset_ms, self._ahead_since = offset_ms, None
        return now_ms + offset_ms
