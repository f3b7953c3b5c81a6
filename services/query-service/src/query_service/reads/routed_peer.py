"""Another instance that reads are routed to, and its recent failures."""

from collections.abc import Callable, Mapping

from query_service.cluster.misplaced import MisplacedAt
from query_service.cluster.shard_map import StorePartition
from query_service.reads import Reads
from query_service.storage.progress import Freshness

Held = Mapping[StorePartition, tuple[bool, Freshness]]
"""Whether each partition that an instance holds is served, and how fresh it is."""


class RoutedPeer:
    """`reads` reads its stores. A partition that it did not serve is not usable there for the back-off time.

    After it, one call at a time tries again, and the others ask the next replica until that call has had its
    answer. A peer that does not answer at all is usable for nothing until it answers any call again: no caller has to
    try it, because the owner of this object probes it.
    """

    def __init__(self, reads: Reads, backoff_s: float, monotonic: Callable[[], float]) -> None:
        self.reads = reads
        self.held: Held = {}
        """The partitions that the peer held when it was asked last, as it said; empty while it does not answer."""
        self.misplaced: MisplacedAt = {}
        """The groups that stand in other partitions than theirs there, as the peer said last."""
        self._backoff_s = backoff_s
        self._monotonic = monotonic
        self._failed: dict[StorePartition, float] = {}
        self._answered_at = monotonic()
        self.unreachable = False

    def usable(self, key: StorePartition) -> bool:
        """Returns whether to ask this peer before others for a partition; True may be the one call that tries again."""
        until = self._failed.get(key)
        if self.unreachable or until is None:
            return not self.unreachable
        if self._monotonic() < until:
            return False
        self.failed(key)
        return True

    def failed(self, key: StorePartition | None) -> None:
        """Notes that the peer does not serve a partition now, or, for None, that it does not answer at all."""
        if key is None:
            self.unreachable = True
        else:
            self._failed[key] = self._monotonic() + self._backoff_s

    def answered(self, key: StorePartition | None) -> None:
        """Notes that the peer has answered, and that it serves a partition unless that is None."""
        self._answered_at = self._monotonic()
        self.unreachable = False
        if key is not None and self._failed:
            self._failed.pop(key, None)

    def silent_since(self, time: float) -> bool:
        """Returns whether the peer has answered no call since a time of the clock."""
        return self._answered_at <= time
