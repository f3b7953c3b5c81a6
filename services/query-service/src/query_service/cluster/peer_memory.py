"""Remembers what failed at a peer lately."""

from collections.abc import Callable

Shard = tuple[str, int]


class PeerMemory:
    """What a peer did not serve is not usable for the back-off time.

    After it, one call at a time tries again, and the others go on to the next replica until that call has had its
    answer. A peer that does not answer at all is usable for nothing until it answers again, to whomever: no caller is
    made to try it, since whoever owns the memory probes it.
    """

    def __init__(self, backoff_s: float, monotonic: Callable[[], float]) -> None:
        """Starts with nothing failed."""
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._failed: dict[Shard, float] = {}
        self._answered_at = monotonic()
        self.unreachable = False

    def usable(self, shard: Shard) -> bool:
        """Whether to ask this peer before others for a partition; True may be the one call that tries again."""
        return not self.unreachable and (not self._failed or self._tries_again(shard))

    def failed(self, shard: Shard | None) -> None:
        """Notes that the peer does not serve a partition now, or, for None, that it does not answer at all."""
        if shard is None:
            self.unreachable = True
        else:
            self._failed[shard] = self._monotonic() + self._backoff_s

    def answered(self, shard: Shard | None) -> None:
        """Notes that the peer has answered, and that it serves a partition when one is given."""
        self._answered_at = self._monotonic()
        self.unreachable = False
        if shard is not None and self._failed:
            self._failed.pop(shard, None)

    def silent_since(self, time: float) -> bool:
        """Whether the peer has answered nobody since a time of the clock."""
        return self._answered_at <= time

    def _tries_again(self, shard: Shard) -> bool:
        until = self._failed.get(shard)
        if until is None:
            return True
        if self._monotonic() < until:
            return False
        self.failed(shard)
        return True
