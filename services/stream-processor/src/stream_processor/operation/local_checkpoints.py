"""Checkpoints in a local directory."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from stream_processor.errors import CheckpointsUnusableError, SettingsError


class LocalCheckpoints:
    """See Checkpoints. It needs no Spark, so that what is wrong is said before Spark starts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def location(self, query: str) -> str:
        """See Checkpoints."""
        return str((self._directory / query).absolute())

    def exists(self, query: str) -> bool:
        """See Checkpoints."""
        return (self._directory / query).exists()

    def read(self, name: str) -> dict[str, Any] | None:
        """See Notes."""
        note = self._directory / name
        return cast(dict[str, Any], json.loads(note.read_text())) if note.exists() else None

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        """See Notes."""
        replacement = self._directory / f"{name}.new"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            replacement.write_text(json.dumps(content, indent=2) + "\n")
            replacement.replace(self._directory / name)
        except OSError as error:
            raise self._unusable(error) from error

    @contextmanager
    def hold(self) -> Iterator[None]:
        """See Checkpoints. The directory is made if need be; the kernel lets go of it however this process ends."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            held = (self._directory / "lock").open("w")
        except OSError as error:
            raise self._unusable(error) from error
        with held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise SettingsError(
                    f"STREAM_PROCESSOR_CHECKPOINTS: another process works on {self._directory}; "
                    "stop it or choose another"
                ) from error
            yield

    def check(self) -> None:
        """See Checkpoints. The kernel gives the lock to nobody else."""

    def _unusable(self, error: OSError) -> CheckpointsUnusableError:
        return CheckpointsUnusableError(f"cannot write {self._directory}: {error.strerror}")
