"""Opens the partitions that this instance is to hold."""

import time
from collections.abc import Callable

from query_service.changes import Changes
from query_service.metrics import Metrics
from query_service.partition_host import PartitionHost, Place
from query_service.progress import Progress
from query_service.store_directory import Identity, StoreDirectory
from query_service.view import Topic

End = tuple[int, float]


class HostFactory:
    """Makes hosts with all that they share."""

    def __init__(
        self,
        directory: StoreDirectory,
        new_changes: Callable[[], Changes],
        metrics: Metrics,
        caught_up_s: float,
        wall_ms: Callable[[], int],
    ) -> None:
        """A host serves once its lag has been below `caught_up_s`."""
        self._directory = directory
        self._new_changes = new_changes
        self._metrics = metrics
        self._caught_up_s = caught_up_s
        self._wall_ms = wall_ms

    def open(self, store: str, topic: Topic, partition: int, end: End) -> PartitionHost:
        """Returns a host that goes on from what is on disk. Blocks on the disk; raises StoreFailedError.

        `end` is an end of the partition and when it was asked for. An empty store knows of no deletion before it, and
        notes so: compaction may have removed tombstones that others have seen.
        """
        place = Place(store, topic.name, partition, topic.epoch, Identity(topic.topic_id, partition))
        opened = self._directory.open(store, place.identity)
        if opened.next_offset == 0:
            opened.note_purged(end[0] - 1)
        progress = Progress(opened.next_offset, self._caught_up_s, time.monotonic)
        progress.saw_end(*end)
        return PartitionHost(place, opened, progress, self._new_changes(), self._metrics, self._wall_ms)

    def reopen(self, host: PartitionHost, set_aside_for: str | None) -> None:
        """Gives the host an empty store: the old one is set aside for a reason, or deleted without one."""
        place = host.place
        host.store.close()
        if set_aside_for is not None:
            self._directory.set_aside(place.store, place.identity, set_aside_for)
        store = self._directory.reset(place.store, place.identity)
        store.note_purged((host.progress.end_offset or 0) - 1)
        host.start_over(store, Progress(0, self._caught_up_s, time.monotonic))
