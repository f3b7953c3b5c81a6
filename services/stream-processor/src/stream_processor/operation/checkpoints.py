"""What a place for checkpoints offers, and what each checkpoint was made with: with another meaning it is refused."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from stream_processor.errors import PipelineChangedError
from stream_processor.operation.plan import QueryPlan

STATE_VERSION = 2
"""Of what the state holds. Raised when an older state cannot be read any more."""
MAY_CHANGE = {"name", "trigger", "dead_letters", "forget_deleted"}
"""Keys of a file that may change: state and topic hold the same things after it."""


class Notes(Protocol):
    """Small JSON objects that outlive the process. Every call may block for as long as its file system does."""

    def read(self, name: str) -> dict[str, Any] | None:
        """The note, None if there is none. Raises CheckpointsUnusableError."""

    def replace(self, name: str, content: Mapping[str, object]) -> None:
        """Writes the note as a whole: a reader sees the old or the new one, never a part.

        File systems that cannot rename over a file may show none for a moment. Raises CheckpointsUnusableError.
        """


class Checkpoints(Notes, Protocol):
    """The place of all checkpoints of one process, each below it by the name of its query."""

    def location(self, query: str) -> str:
        """What Spark takes as the query's checkpoint."""

    def exists(self, query: str) -> bool:
        """Whether the query has a checkpoint. Raises CheckpointsUnusableError."""

    def hold(self) -> AbstractContextManager[None]:
        """Keeps other processes off for as long as the context lasts, however it ends.

        Raises SettingsError when another process holds the place, CheckpointsUnusableError when it cannot be written.
        """

    def check(self) -> None:
        """Raises CheckpointsTakenError when the place that this process holds has gone to another. Never blocks."""


def claim(
    checkpoints: Checkpoints, plan: QueryPlan, topic_ids: Mapping[str, str], clock: Callable[[], float] = time.time
) -> int:
    """Records what the query's checkpoint means, and returns its epoch: the milliseconds at which its life began.

    Keys and rows of another meaning stand in the state and on the topic, and nothing would ever retract them. A topic
    that was recreated, which has another id, has other offsets, or lacks the records that the state holds.
    Raises PipelineChangedError for both, CheckpointsUnusableError.
    """
    note, meaning = f"{plan.name}.json", _meaning(plan, topic_ids)
    before = checkpoints.read(note) or {}
    epoch = int(before.pop("epoch", 0))
    if not checkpoints.exists(plan.name):
        epoch = max(int(clock() * 1000), epoch + 1)
    elif before and before != meaning:
        keys = sorted(before.keys() | meaning.keys())
        changed = ", ".join(key for key in keys if before.get(key) != meaning.get(key))
        raise PipelineChangedError(
            f"{plan.pipelines[0].file}: {changed}: changed since the checkpoint {checkpoints.location(plan.name)} "
            "was made: give the pipeline a new name and sink, or delete the checkpoint and the records on "
            f"{plan.sink_topic}"
        )
    checkpoints.replace(note, {"epoch": epoch, **meaning})
    return epoch


def _meaning(plan: QueryPlan, topic_ids: Mapping[str, str]) -> dict[str, object]:
    source = {"source.topic": plan.source_topic, "source.topic.id": topic_ids[plan.source_topic]}
    if plan.sets_aside:
        return dict(source)
    written = plan.pipelines[0].definition.model_dump(mode="json", by_alias=True, exclude=MAY_CHANGE)
    sections = {key: written.pop(key) for key in ("source", "sink")}
    # Raised when the database was restored: what follows is newer than all that the state holds.
    sections["source"].pop("epoch")
    return {
        **written,
        **{f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()},
        **source,
        "sink.topic.id": topic_ids[plan.sink_topic],
        "sink.partitions": plan.shuffle_partitions,
        "state": STATE_VERSION,
    }
