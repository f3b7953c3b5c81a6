"""Notices that files have changed which a service reads while it runs, and hands over what they hold."""

import asyncio
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from statecast_service.errors import ServiceError

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


def changes_of(file: Path, directory: Path | None, read: Callable[[], T]) -> Callable[[], T | None]:
    """What calls `read` once the file, or one below the directory, has changed; it returns None without a change."""
    settled = Settled(lambda: (content_of(file), state_of(directory)))
    return lambda: None if settled.news() is None else read()


@dataclass(eq=False)
class FollowedFile(Generic[T]):
    """One task on the event loop that looks at a file every `interval_s` seconds, and hands over what it holds.

    `read` returns that when it has changed since the last time, None without a change; it blocks, and raises
    ServiceError for a file that is wrong, which changes nothing. `take` takes it at each look, since what hinders it
    may pass, and returns why some of it cannot be taken. `report` is called at each look, with all that is wrong and
    with what of that is new.
    """

    read: Callable[[], T | None]
    take: Callable[[T], Set[str]]
    report: Callable[[Set[str], Set[str]], None]
    interval_s: float
    _wanted: list[T] = field(default_factory=list, init=False)
    _wrong: frozenset[str] = field(default=frozenset(), init=False)
    _reported: frozenset[str] = field(default=frozenset(), init=False)

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await asyncio.sleep(self.interval_s)
            await self.look()

    async def look(self) -> None:
        try:
            changed = await asyncio.to_thread(self.read)
        except ServiceError as error:
            self._wrong = frozenset({f"all stays as it is: {error}"})
        else:
            if changed is not None:
                self._wanted, self._wrong, self._reported = [changed], frozenset(), frozenset()
        problems = self._wrong.union(*map(self.take, self._wanted))
        self.report(problems, problems - self._reported)
        self._reported = problems
