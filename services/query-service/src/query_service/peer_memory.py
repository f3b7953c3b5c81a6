"""Remembers what failed at a peer lately."""

from collections.abc import Callable

Shard = tuple[str, int]


class PeerMemory:
    """What failed is not usable for the back-off time.

    After it, one call at a time tries again, and the others go on to the next replica until that call has had its
    answer: a peer that hangs costs one caller a wait, not all of them.
    """

    def __init__(self, backoff_s: float, monotonic: Callable[[], float]) -> None:
        """Starts with nothing failed."""
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._failed: dict[Shard | None, float] = {}

    def usable(self, shard: Shard) -> bool:
        """Whether to ask this peer before others for a partition; True may be the one call that tries again."""
        return not self._failed or (self._tries_again(None) and self._tries_again(shard))

    def failed(self, shard: Shard | None) -> None:
        """Notes that the peer does not serve a partition now, or, for None, that it does not answer at all."""
        self._failed[shard] = self._monotonic() + self._backoff_s

    def answered(self, shard: Shard) -> None:
        """Notes that the peer has answered for a partition."""
        if self._failed:
            self._failed.pop(None, None)
            self._failed.pop(shard, None)

    def _tries_again(self, shard: Shard | None) -> bool:
        until = self._failed.get(shard)
        if until is None:
            return True
        if self._monotonic() < until:
            return False
        self.failed(shard)
        return True
