"""Measures the data directory by kinds of data."""

import os
from collections.abc import Collection, Iterator
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
    open_paths = {str(root / store / str(partition)) for store, partition in held}
    for kind, file in sorted(_files(root, open_paths), key=lambda entry: entry[0] not in (HELD, RELEASED)):
        try:
            status = file.stat(follow_symlinks=False)
        except OSError:
            continue
        if status.st_ino not in seen:
            seen.add(status.st_ino)
            sizes[kind] += status.st_size
    return sizes


def _files(root: Path, open_paths: Collection[str]) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yields each file with its kind."""
    for store in _entries(str(root)):
        for partition in _entries(store.path) if store.is_dir(follow_symlinks=False) else ():
            kind = KINDS.get(store.name, HELD if partition.path in open_paths else RELEASED)
            for file in _below(partition):
                yield kind, file


def _below(entry: "os.DirEntry[str]") -> Iterator["os.DirEntry[str]"]:
    if not entry.is_dir(follow_symlinks=False):
        yield entry
        return
    for each in _entries(entry.path):
        yield from _below(each)


def _entries(path: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []
