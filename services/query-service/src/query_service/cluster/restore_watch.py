"""Follows the partitions that are being read before they are served: metrics, and one line on a terminal."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.progress import Progress

_BAR_WIDTH = 30


@dataclass(frozen=True)
class RestoreProgress:
    """The restore of an instance: records of all its partitions, seconds since the first, partitions still behind."""

    done: int
    total: int
    seconds: float
    partitions: int


Show = Callable[[RestoreProgress | None], None]


@dataclass
class _Partition:
    began_at: float
    from_offset: int
    done: int = 0
    left: int | None = None  # None once it is served, or has moved away


@dataclass(eq=False)
class RestoreWatch:
    """Follows a restore, from the first partition that is not served until all are; `show` gets None at the end."""

    view: View
    metrics: Metrics
    show: Show
    monotonic: Callable[[], float]
    _partitions: dict[StorePartition, _Partition] = field(default_factory=dict, init=False)

    def update(self) -> None:
        now = self.monotonic()
        behind = {key: replica for key, replica in self.view.replicas.items() if not replica.progress.serving}
        for key, replica in behind.items():
            partition = self._partitions.setdefault(key, _Partition(now, replica.progress.next_offset))
            self._count(key, partition, replica.progress)
            partition.left = replica.progress.lag_records
            self.metrics.restore_left.labels(key[0], str(key[1])).set(partition.left)
        for key, partition in self._partitions.items():
            if key not in behind and partition.left is not None:
                self._end(key, partition, now)
        if behind:
            partitions = self._partitions.values()
            done = sum(partition.done for partition in partitions)
            left = sum(partition.left or 0 for partition in partitions)
            began_at = min(partition.began_at for partition in partitions)
            self.show(RestoreProgress(done, done + left, now - began_at, len(behind)))
        elif self._partitions:
            self._partitions.clear()
            self.show(None)

    def _count(self, key: StorePartition, partition: _Partition, progress: Progress) -> None:
        done = max(0, progress.next_offset - partition.from_offset)
        self.metrics.restore_records.labels(key[0]).inc(max(0, done - partition.done))
        partition.done = done

    def _end(self, key: StorePartition, partition: _Partition, now: float) -> None:
        labels = (key[0], str(key[1]))
        replica = self.view.replicas.get(key)
        if replica is not None:
            self._count(key, partition, replica.progress)
            self.metrics.restore_seconds.labels(*labels).set(now - partition.began_at)
        self.metrics.restore_left.remove(*labels)
        partition.left = None


def terminal_bar(terminal: TextIO) -> Show:
    """Returns a function that draws a bar over its own line again and again, and clears it for None."""

    def show(progress: RestoreProgress | None) -> None:
        line = "" if progress is None else f"{bar(progress)}\r"  # a log line that comes next is written over it
        terminal.write(f"\x1b[K{line}")
        terminal.flush()

    return show


def bar(progress: RestoreProgress) -> str:
    share = progress.done / progress.total if progress.total else 1.0
    filled = int(share * _BAR_WIDTH)
    rate = progress.done / progress.seconds if progress.seconds > 0 else 0.0
    left = f", {(progress.total - progress.done) / rate:,.0f} s left" if rate > 0 else ""
    return (
        f"restoring {progress.partitions} partitions [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {share:4.0%} "
        f"{progress.done:,} of {progress.total:,} records, {rate:,.0f}/s{left}"
    )
