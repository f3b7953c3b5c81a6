"""A token bucket: so many a second on average, and so many at once."""


class TokenBucket:
    """Holds at most `burst` tokens, full at first, and gets `rate` new ones a second. Times are monotonic seconds."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Takes a token; returns whether there was one."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Whether nothing is missing, so that a new bucket would be the same."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
