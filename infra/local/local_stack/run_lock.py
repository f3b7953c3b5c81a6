"""Holds that at most one supervisor runs in a directory: a file lock, which ends with its process however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from local_stack.errors import AlreadyRunningError


@contextmanager
def hold(lock: Path) -> Iterator[None]:
    """Locks the file for the length of the block. Raises AlreadyRunningError when another process has it."""
    with lock.open("a+") as file:
        if not _locked(file):
            raise AlreadyRunningError(
                f"a stack already runs in {lock.parent}: see `make status`, end it by `make down`"
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def holder(lock: Path) -> int | None:
    """The process id of the supervisor that holds the lock; None when there is none."""
    try:
        with lock.open("r+") as file:
            if _locked(file):
                return None
            return int(file.read() or 0) or None
    except FileNotFoundError:
        return None


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
