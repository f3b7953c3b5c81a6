"""Remembers what a checkpoint was made with, and refuses to go on from it with another meaning."""

import time
from collections.abc import Callable, Mapping

from stream_processor.errors import PipelineChangedError
from stream_processor.operation.checkpoints import Checkpoints
from stream_processor.operation.plan import QueryPlan

FORM = 2
"""Of what the state holds. It rises when an older state cannot be read any more."""
FREE = {"name", "trigger", "dead_letters", "forget_deleted"}
"""Keys of a file that may change: state and topic hold the same things after it."""


def claim(
    checkpoints: Checkpoints, plan: QueryPlan, topic_ids: Mapping[str, str], clock: Callable[[], float] = time.time
) -> int:
    """Writes down what the query's checkpoint means, and gives its epoch: the milliseconds at which its life began.

    Keys and rows of another meaning stand in the state and on the topic, and nothing would ever retract them. A topic
    that was deleted and made anew, which its id tells, has other offsets, or lacks the records that the state holds.
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
    written = plan.pipelines[0].definition.model_dump(mode="json", by_alias=True, exclude=FREE)
    sections = {key: written.pop(key) for key in ("source", "sink")}
    # Raised when the database was restored: what follows is newer than all that the state holds.
    sections["source"].pop("epoch")
    return {
        **written,
        **{f"{section}.{key}": value for section, keys in sections.items() for key, value in keys.items()},
        **source,
        "sink.topic.id": topic_ids[plan.sink_topic],
        "sink.partitions": plan.shuffle_partitions,
        "state": FORM,
    }
