"""Measures the data directory by kinds of data."""

import os
from collections.abc import Collection
from pathlib import Path

from query_service.storage.store_directory import CHECKPOINTS, SET_ASIDE, UNFINISHED

HELD, RELEASED = "held", "released"
KINDS = {SET_ASIDE: "set-aside", UNFINISHED: "unfinished", CHECKPOINTS: "checkpoints"}


def bytes_by_kind(root: Path, held: Collection[tuple[str, int]]) -> dict[str, int]:
    """Returns the bytes of each kind of data below `root`; blocks while it looks at all files.

    `held` names the stores and partitions that are open: a file that a checkpoint shares with one counts there alone.
    Files that vanish meanwhile or may not be read, such as a volume's `lost+found`, do not count.
    """
    sizes, seen = dict.fromkeys((HELD, RELEASED, *KINDS.values()), 0), set[int]()
    held_places = {(store, str(partition)) for store, partition in held}
    files: list[tuple[str, Path]] = []
    for directory, _, names in os.walk(root):  # passes over directories that cannot be read
        path = Path(directory)
        place = path.relative_to(root).parts[:2]
        if place:
            kind = KINDS.get(place[0], HELD if place in held_places else RELEASED)
            files += [(kind, path / name) for name in names]
    for kind, file in sorted(files, key=lambda entry: entry[0] not in (HELD, RELEASED)):
        try:
            status = file.lstat()
        except OSError:
            continue
        if status.st_ino not in seen:
            seen.add(status.st_ino)
            sizes[kind] += status.st_size
    return sizes
