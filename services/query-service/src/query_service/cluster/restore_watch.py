"""Follows the partitions that are being read before they are served: how many records are left, and for how long."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from query_service.cluster.peer_memory import Shard
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.progress import Progress


@dataclass(frozen=True)
class Restoring:
    """How far the restore of an instance is: records of all partitions that take part, and seconds since the first."""

    done: int
    total: int
    seconds: float
    partitions: int


class Shown(Protocol):
    """What shows people how far a restore is; see RestoreBar."""

    def show(self, now: Restoring) -> None:
        """See RestoreBar."""

    def clear(self) -> None:
        """See RestoreBar."""


@dataclass
class _Partition:
    began_at: float
    from_offset: int
    done: int = 0
    left: int = 0


class RestoreWatch:
    """A restore lasts from the first partition that is not served until all are; `look` is called on the event loop."""

    def __init__(self, view: View, metrics: Metrics, shown: Shown | None, monotonic: Callable[[], float]) -> None:
        """Looks at the hosts of the view."""
        self._view = view
        self._metrics = metrics
        self._shown = shown
        self._monotonic = monotonic
        self._partitions: dict[Shard, _Partition] = {}

    def look(self) -> None:
        """Brings the metrics and what is shown up to date."""
        now = self._monotonic()
        behind = {shard: host for shard, host in self._view.hosts.items() if not host.progress.serving}
        for shard, host in behind.items():
            progress = host.progress
            seen = self._partitions.setdefault(shard, _Partition(now, progress.next_offset))
            self._count(shard, seen, progress)
            seen.left = progress.lag_records
            self._metrics.restore_left.labels(shard[0], str(shard[1])).set(seen.left)
        for shard in self._partitions.keys() - behind.keys():
            self._ended(shard, now)
        if behind:
            self._show(now)
        elif self._partitions:
            self._partitions.clear()
            if self._shown is not None:
                self._shown.clear()

    def _count(self, shard: Shard, seen: _Partition, progress: Progress) -> None:
        done = max(0, progress.next_offset - seen.from_offset)
        self._metrics.restore_records.labels(shard[0]).inc(max(0, done - seen.done))
        seen.done = done

    def _ended(self, shard: Shard, now: float) -> None:
        seen = self._partitions[shard]
        if seen.left >= 0:
            labels = (shard[0], str(shard[1]))
            host = self._view.hosts.get(shard)
            if host is not None:
                self._count(shard, seen, host.progress)
                self._metrics.restore_seconds.labels(*labels).set(now - seen.began_at)
            self._metrics.restore_left.remove(*labels)
            seen.left = -1

    def _show(self, now: float) -> None:
        if self._shown is None:
            return
        parts = self._partitions.values()
        done = sum(part.done for part in parts)
        left = sum(max(0, part.left) for part in parts)
        began_at = min(part.began_at for part in parts)
        self._shown.show(Restoring(done, done + left, now - began_at, sum(part.left >= 0 for part in parts)))
