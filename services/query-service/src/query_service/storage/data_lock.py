"""Keeps two instances from using one data directory."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from query_service.errors import DataDirectoryError
from query_service.settings import variable


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Holds the directory within the block, and makes it if need be. Raises DataDirectoryError.

    The kernel releases the lock when the process ends, however it ends.
    """
    name = variable("data_directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataDirectoryError(f"{name}={directory}: it cannot be written to: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise DataDirectoryError(f"{name}={directory}: another instance uses it: give each its own") from error
    finally:
        os.close(lock)
