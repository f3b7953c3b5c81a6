"""Where checkpoints stand, with the notes beside them: a local directory, or a path of any Hadoop file system."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from stream_processor.operation.hadoop_checkpoints import HadoopCheckpoints
from stream_processor.operation.local_checkpoints import LocalCheckpoints
from stream_processor.operation.notes import Notes

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class Checkpoints(Notes, Protocol):
    """The place of all checkpoints of one process, each below it by the name of its query."""

    def location(self, query: str) -> str:
        """What Spark takes as the query's checkpoint."""
        ...

    def exists(self, query: str) -> bool:
        """Whether the query has a checkpoint. Raises CheckpointsUnusableError."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Keeps other processes off for as long as the context lasts, however it ends.

        Raises SettingsError when another process holds the place, CheckpointsUnusableError when it cannot be written.
        """
        ...

    def check(self) -> None:
        """Raises CheckpointsTakenError when the place that this process holds has gone to another. Never blocks."""
        ...


def open_checkpoints(place: str, spark: Callable[[], SparkSession]) -> Checkpoints:
    """The checkpoints at a directory or a URI. Only a URI needs the session, whose JVM knows its file system.

    Raises CheckpointsUnusableError when the file system of the URI is not known or does not answer.
    """
    return HadoopCheckpoints(spark(), place) if _URI.match(place) else LocalCheckpoints(Path(place))
