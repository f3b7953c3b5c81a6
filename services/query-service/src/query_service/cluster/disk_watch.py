"""Finds out which partitions on disk are needed no more, and measures the disk."""

import asyncio
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.storage.store_directory import StoreDirectory
from query_service.storage.stores_file import CHECKPOINTS, SET_ASIDE, UNFINISHED

_LOOK_S = 10.0
_HELD, _RELEASED = "held", "released"
_KINDS = {SET_ASIDE: "set-aside", UNFINISHED: "unfinished", CHECKPOINTS: "checkpoints"}


@dataclass(eq=False)
class DiskWatch:
    """Looks at the data directory every ten seconds, or every `released_s` when that is less.

    A partition that has moved away stays for `released_s`: within it, an instance that restarts takes its partitions
    back, and the next one that dies finds its rows here. A directory that was set aside stays for `set_aside_s`.
    """

    view: View
    directory: StoreDirectory
    metrics: Metrics
    released_s: float
    set_aside_s: float
    monotonic: Callable[[], float]
    _since: dict[StorePartition, float] = field(default_factory=dict, init=False)
    """When each partition on disk was first seen to belong to others."""
    _next: float = field(default=0.0, init=False)

    async def due(self) -> set[StorePartition]:
        """Returns the partitions to delete: this process has not had them to hold for `released_s`. Often none.

        On the way it deletes the directories that were set aside too long ago, and sets `query_service_disk_bytes`.
        Raises StoreFailedError when the disk refuses.
        """
        now = self.monotonic()
        if now < self._next:
            return set()
        self._next = now + min(_LOOK_S, self.released_s)
        held = set(self.view.replicas)
        await asyncio.to_thread(self.directory.prune_set_aside, self.set_aside_s)
        sizes = await asyncio.to_thread(bytes_by_kind, self.directory.root, held)
        for kind, size in sizes.items():
            self.metrics.disk_bytes.labels(kind).set(size)
        released = self._released()
        self._since = {key: self._since.get(key, now) for key in released}
        return {key for key, since in self._since.items() if now - since >= self.released_s}

    def _released(self) -> set[StorePartition]:
        """Returns the partitions on disk that others hold; none while it is not known who holds them."""
        if self.view.me not in self.view.shard_map.members:
            return set()
        known = [each for each in self.view.stores.values() if each.topic in self.view.topics]
        on_disk = {(each.name, partition) for each in known for partition in self.directory.partitions(each)}
        return on_disk - self.view.assigned() - self.view.replicas.keys()


def bytes_by_kind(root: Path, held: Collection[tuple[str, int]]) -> dict[str, int]:
    """Returns the bytes of each kind of data below `root`; blocks while it looks at all files.

    `held` names the stores and partitions that are open: a file that a checkpoint shares with one counts there alone.
    Files that vanish meanwhile or may not be read, such as a volume's `lost+found`, do not count.
    """
    sizes, seen = dict.fromkeys((_HELD, _RELEASED, *_KINDS.values()), 0), set[int]()
    held_places = {(store, str(partition)) for store, partition in held}
    files: list[tuple[str, Path]] = []
    for directory, _, names in os.walk(root):  # passes over directories that cannot be read
        path = Path(directory)
        place = path.relative_to(root).parts[:2]
        if place:
            kind = _KINDS.get(place[0], _HELD if place in held_places else _RELEASED)
            files += [(kind, path / name) for name in names]
    for kind, file in sorted(files, key=lambda entry: entry[0] not in (_HELD, _RELEASED)):
        try:
            status = file.lstat()
        except OSError:
            continue
        if status.st_ino not in seen:
            seen.add(status.st_ino)
            sizes[kind] += status.st_size
    return sizes
