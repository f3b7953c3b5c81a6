"""What is remembered beside the checkpoints."""

from collections.abc import Mapping
from typing import Any, Protocol


class Notes(Protocol):
    """Small JSON objects that outlive the process. Every call may block for as long as its file system does."""

    def read(self, name: str) -> dict[str, Any] | None:
        """The note, None if there is none. Raises CheckpointsUnusableError."""
        ...

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        """Writes the note as a whole: a reader sees the old or the new one, never a part.

        File systems that cannot rename over a file may show none for a moment. Raises CheckpointsUnusableError.
        """
        ...
