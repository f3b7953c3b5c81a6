"""How many channels each consumer may create at one edge, which bounds how many a consumer has; see ADR 0012."""

from collections.abc import Callable

from ws_edge.access.token_bucket import TokenBucket
from ws_edge.authorization import Consumer
from ws_edge.errors import TooManyChannelsError

HOUR_S = 3600.0


class ChannelQuota:
    """An hour's worth at once, and so many an hour after that."""

    def __init__(self, per_hour: int, clock: Callable[[], float]) -> None:
        """`clock` tells monotonic seconds."""
        self._per_hour = per_hour
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, consumer: Consumer) -> None:
        """Counts a channel that is to be created. Raises TooManyChannelsError when it is one too many."""
        now = self._clock()
        bucket = self._buckets.get(consumer.principal)
        if bucket is None:
            self._forget_full(now)
            bucket = self._buckets[consumer.principal] = TokenBucket(self._per_hour / HOUR_S, self._per_hour, now)
        if not bucket.take(now):
            text = f"this consumer creates more than {self._per_hour} channels an hour: use those that there are"
            raise TooManyChannelsError(text)

    def _forget_full(self, now: float) -> None:
        for principal in [each for each, bucket in self._buckets.items() if bucket.is_full(now)]:
            del self._buckets[principal]
