"""Notices that files have changed which a service reads while it runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Settled(Generic[T]):
    """Looks at something again and again, and tells what is new there once two looks in a row have seen the same.

    A file that is looked at while it is being written holds a part of what it is to hold, and the part may well be
    sound. What the first two looks see is new, too. Looks are compared by `==`, so a file is best looked at by its
    content: a mounted ConfigMap changes by a symbolic link above the file, whose own name and path stay.
    """

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._seen: list[T] = []
        self._told: list[T] = []

    def news(self) -> T | None:
        """What is there, if it has changed since the last time; else None. Raises what the look raises."""
        seen = [self._look()]
        if seen != self._seen or seen == self._told:
            self._seen = seen
            return None
        self._told = seen
        return seen[0]


def content_of(path: Path) -> bytes | str:
    """What the file holds; a text that says why it cannot be read, so that this is a content, too."""
    try:
        return path.read_bytes()
    except OSError as error:
        return error.strerror or str(error)


def state_of(directory: Path | None) -> frozenset[tuple[str, int, int]]:
    """Names, sizes and times of the files below the directory, to compare; of None, or where there is none: nothing."""
    if directory is None:
        return frozenset()
    files = ((path, path.stat()) for path in directory.rglob("*") if path.is_file())
    try:
        return frozenset((str(path), status.st_size, status.st_mtime_ns) for path, status in files)
    except FileNotFoundError:  # it went while it was looked at, and the next look finds that
        return frozenset()
