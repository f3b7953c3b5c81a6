"""Follows files that may change while a service runs, and hands over their new content."""

import asyncio
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from statecast_service.errors import ServiceError

T = TypeVar("T")


class Settled(Generic[T]):
    """Polls a value, and reports a change once two looks in a row see the same value.

    A look may catch a file half written, and that half may well be valid. The first value is reported as a change,
    too. Values are compared by `==`, so a look at a file should return its content: a mounted ConfigMap changes by a
    symbolic link above the file, and the file's own name and path stay.
    """

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._seen: list[T] = []
        self._told: list[T] = []

    def news(self) -> T | None:
        """Looks once; returns a settled value that is not yet reported, else None. Passes on errors of the look."""
        seen = [self._look()]
        if seen != self._seen or seen == self._told:
            self._seen = seen
            return None
        self._told = seen
        return seen[0]


def content_of(path: Path) -> bytes | str:
    """Returns the file's content, or the reason why it cannot be read as text, which can be compared like content."""
    try:
        return path.read_bytes()
    except OSError as error:
        return error.strerror or str(error)


def state_of(directory: Path | None) -> frozenset[tuple[str, int, int]]:
    """Returns names, sizes and times of the files below the directory, to compare; empty without a directory."""
    if directory is None:
        return frozenset()
    files = ((path, path.stat()) for path in directory.rglob("*") if path.is_file())
    try:
        return frozenset((str(path), status.st_size, status.st_mtime_ns) for path, status in files)
    except FileNotFoundError:  # a file was removed during the look; the next look sees that
        return frozenset()


def changes_of(file: Path, directory: Path | None, read: Callable[[], T]) -> Callable[[], T | None]:
    """Returns a function: `read` after a change of the file, or of one below the directory; otherwise None."""
    settled = Settled(lambda: (content_of(file), state_of(directory)))
    return lambda: None if settled.news() is None else read()


@dataclass(eq=False)
class FollowedFile(Generic[T]):
    """Polls a file every `interval_s` seconds in one task on the event loop, and hands over its content.

    `read` returns the content if it has changed since the last call, else None. It blocks, and raises ServiceError
    for a wrong file; then the last content stays in use. `take` receives the content at each look, since an obstacle
    may go away, and returns the reasons why it cannot take parts. `report` receives all problems at each look, and
    the new ones among them.
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
