"""Opens the partitions that this instance is to hold."""

import time
from collections.abc import Callable, Mapping

from query_service.cluster.partitioning import HASHES
from query_service.cluster.view import Topic
from query_service.metrics import Metrics
from query_service.storage.changes import Changes
from query_service.storage.partition_host import PartitionHost, Place
from query_service.storage.place_check import PlaceCheck
from query_service.storage.progress import Progress
from query_service.storage.recent_changes import RecentChanges
from query_service.storage.store_definition import StoreDefinition
from query_service.storage.store_directory import Identity, StoreDirectory

End = tuple[int, float]

_RESTORE_RECORDS = 10_000  # who is further behind reads without a log of its own writes until it has caught up


class HostFactory:
    """Makes hosts with all that they share."""

    def __init__(
        self,
        definitions: Mapping[str, StoreDefinition],
        directory: StoreDirectory,
        new_changes: Callable[[], Changes],
        metrics: Metrics,
        caught_up_s: float,
        wall_ms: Callable[[], int],
        recent_changes: int,
    ) -> None:
        """Opens stores by `definitions`; a host serves once its lag has been below `caught_up_s`.

        Each host remembers its `recent_changes` newest ones in memory.
        """
        self._definitions = definitions
        self._directory = directory
        self._new_changes = new_changes
        self._metrics = metrics
        self._caught_up_s = caught_up_s
        self._wall_ms = wall_ms
        self._recent_changes = recent_changes

    def open(self, store: str, topic: Topic, partition: int, end: End) -> PartitionHost:
        """Returns a host that goes on from what is on disk. Blocks on the disk; raises StoreFailedError.

        `end` is an end of the partition and when it was asked for. An empty store knows of no deletion before it, and
        notes so: compaction may have removed tombstones that others have seen.
        """
        definition = self._definitions[store]
        place = Place(store, topic.name, partition, topic.epoch, Identity(topic.topic_id, partition))
        opened = self._directory.open(definition, place.identity)
        if opened.next_offset == 0:
            opened.note_purged(end[0] - 1)
        opened.restoring = end[0] - opened.next_offset > _RESTORE_RECORDS
        progress = Progress(opened.next_offset, self._caught_up_s, time.monotonic)
        progress.saw_end(*end)
        hash_of = HASHES[definition.partitioner]
        check = PlaceCheck(store, topic.name, partition, topic.partitions, hash_of, self._metrics)
        recent = RecentChanges(self._recent_changes, opened.next_offset - 1)
        return PartitionHost(
            definition, place, opened, progress, self._new_changes(), self._metrics, self._wall_ms, check, recent
        )

    def reopen(self, host: PartitionHost, set_aside_for: str | None) -> None:
        """Gives the host an empty store: the old one is set aside for a reason, or deleted without one."""
        definition = self._definitions[host.place.store]
        identity = host.place.identity
        host.store.close()
        if set_aside_for is not None:
            self._directory.set_aside(definition, identity, set_aside_for)
        store = self._directory.reset(definition, identity)
        store.restoring = True
        store.note_purged((host.progress.end_offset or 0) - 1)
        host.start_over(store, Progress(0, self._caught_up_s, time.monotonic))
