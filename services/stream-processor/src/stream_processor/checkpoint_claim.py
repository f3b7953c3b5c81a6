"""Remembers what a checkpoint was made with, and refuses to go on from it with another meaning."""

import json
from collections.abc import Mapping
from pathlib import Path

from stream_processor.errors import PipelineChangedError
from stream_processor.plan import QueryPlan


def claim(checkpoints: Path, plan: QueryPlan, topic_ids: Mapping[str, str]) -> None:
    """Writes down what the query's checkpoint means; a changed trigger or limit is no other meaning.

    Keys and rows of the old meaning stand in the state and on the topic, and nothing would ever retract them. A topic
    that was deleted and made anew, which its id tells, has other offsets, or lacks the records that the state holds.
    Raises PipelineChangedError for both.
    """
    checkpoint, note = checkpoints / plan.name, checkpoints / f"{plan.name}.json"
    meaning = _meaning(plan, topic_ids)
    if checkpoint.exists() and note.exists() and (before := json.loads(note.read_text())) != meaning:
        changed = ", ".join(sorted(key for key in meaning if before.get(key) != meaning[key]))
        raise PipelineChangedError(
            f"{plan.pipelines[0].file}: {changed}: changed since the checkpoint {checkpoint} was made: give the "
            f"pipeline a new name and sink, or delete the checkpoint and the records on {plan.sink_topic}"
        )
    checkpoints.mkdir(parents=True, exist_ok=True)
    replacement = note.with_suffix(".json.new")
    replacement.write_text(json.dumps(meaning, indent=2) + "\n")
    replacement.replace(note)


def _meaning(plan: QueryPlan, topic_ids: Mapping[str, str]) -> dict[str, object]:
    source = {"source.topic": plan.source_topic, "source.topic.id": topic_ids[plan.source_topic]}
    if not plan.shuffle_partitions:
        return dict(source)
    definition = plan.pipelines[0].definition
    return {
        **source,
        "source.message": definition.source.message,
        "where": definition.where,
        "group_by": definition.group_by,
        "keep": definition.keep.model_dump(),
        "sink.topic": plan.sink_topic,
        "sink.topic.id": topic_ids[plan.sink_topic],
        "sink.partitions": plan.shuffle_partitions,
    }
