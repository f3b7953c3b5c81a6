"""Keeps two processes from working on the same checkpoints."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stream_processor.errors import SettingsError


@contextmanager
def lock(checkpoints: Path) -> Iterator[None]:
    """Holds the directory, which it makes if need be; the kernel lets go of it however this process ends.

    Raises SettingsError when another process holds it or it cannot be written.
    """
    try:
        checkpoints.mkdir(parents=True, exist_ok=True)
        held = (checkpoints / "lock").open("w")
    except OSError as error:
        raise SettingsError(f"STREAM_PROCESSOR_CHECKPOINTS: cannot write {checkpoints}: {error.strerror}") from error
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SettingsError(
                f"STREAM_PROCESSOR_CHECKPOINTS: another process works on {checkpoints}; stop it or choose another"
            ) from error
        yield
