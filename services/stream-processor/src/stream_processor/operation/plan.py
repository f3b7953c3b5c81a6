"""Decides which queries the pipelines become: one each, and one per source topic for its dead letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from stream_processor.definition.dead_letter_topic import dead_letter_topic
from stream_processor.definition.pipeline import Pipeline
from stream_processor.definition.sections import Shape, SourceSection, TriggerSection
from stream_processor.errors import PipelineFileError

SHUFFLES: Mapping[Shape, int] = MappingProxyType({"latest": 1, "members": 1, "aggregate": 2, "route": 0})


@dataclass(frozen=True)
class QueryPlan:
    """One streaming query.

    `pipelines` is the one that it runs, or all of a source topic whose dead letters it writes. `shuffles` of
    `shuffle_partitions` each follow upon the source: one by the rows, of an aggregate another by the groups, none of
    what keeps no state. `tasks` run at once, for good in real-time mode. `epoch` is the life of the checkpoint.
    """

    name: str
    pipelines: tuple[Pipeline, ...]
    source_topic: str
    sink_topic: str
    trigger: TriggerSection
    source_partitions: int
    shuffle_partitions: int
    shuffles: int = 0
    epoch: int = 0

    @property
    def tasks(self) -> int:
        """The tasks that run at once."""
        return self.source_partitions + self.shuffles * self.shuffle_partitions

    @property
    def sets_aside(self) -> bool:
        """Whether it writes dead letters, and not what a pipeline makes."""
        return self.sink_topic == dead_letter_topic(self.source_topic)

    @property
    def realtime(self) -> bool:
        """Whether the tasks stay."""
        return self.trigger.mode == "realtime"


def topics_of(pipelines: Sequence[Pipeline]) -> set[str]:
    """Every topic that must exist before the pipelines start."""
    sources = {pipeline.definition.source.topic for pipeline in pipelines}
    sinks = {pipeline.definition.sink.topic for pipeline in pipelines}
    tables = {join.topic for pipeline in pipelines for join in pipeline.joins}
    return sources | sinks | tables | {dead_letter_topic(topic) for topic in sources}


def check_together(pipelines: Sequence[Pipeline]) -> None:
    """Raises PipelineFileError if pipelines that are fine alone cannot run side by side."""
    names: dict[str, str] = {}
    sinks: dict[str, str] = {}
    sources: dict[str, SourceSection] = {}
    for pipeline in pipelines:
        source, sink = pipeline.definition.source, pipeline.definition.sink
        if (other := names.setdefault(pipeline.name, pipeline.file)) != pipeline.file:
            raise PipelineFileError(pipeline.file, "name", f"{pipeline.name} is also the name of {other}")
        if (other := sinks.setdefault(sink.topic, pipeline.file)) != pipeline.file:
            raise PipelineFileError(pipeline.file, "sink.topic", f"{sink.topic} is also written by {other}")
        first = sources.setdefault(source.topic, source)
        for key in ("message", "format", "epoch"):
            if (wanted := getattr(first, key)) != getattr(source, key):
                told = f"is {wanted} of {source.topic}, by another file"
                raise PipelineFileError(pipeline.file, f"source.{key}", told)
    for pipeline in pipelines:
        if pipeline.definition.sink.topic in sources:
            raise PipelineFileError(pipeline.file, "sink.topic", "is a source topic; a keyed topic holds no changes")


def plan(
    pipelines: Sequence[Pipeline], partitions: Mapping[str, int], checkpoint: timedelta | None = None
) -> list[QueryPlan]:
    """The queries, given how many partitions each topic has; `checkpoint` overrides the files' intervals."""
    plans = []
    for pipeline in pipelines:
        source, sink = pipeline.definition.source.topic, pipeline.definition.sink.topic
        trigger, shuffles = _trigger([pipeline], checkpoint), SHUFFLES[pipeline.shape]
        counts = partitions[source], partitions[sink] if shuffles else 0, shuffles
        plans.append(QueryPlan(pipeline.name, (pipeline,), source, sink, trigger, *counts))
    for source in dict.fromkeys(pipeline.definition.source.topic for pipeline in pipelines):
        readers = tuple(pipeline for pipeline in pipelines if pipeline.definition.source.topic == source)
        sink = dead_letter_topic(source)
        plans.append(QueryPlan(sink, readers, source, sink, _trigger(readers, checkpoint), partitions[source], 0))
    return plans


def _trigger(pipelines: Sequence[Pipeline], checkpoint: timedelta | None) -> TriggerSection:
    """The first pipeline's trigger."""
    trigger = pipelines[0].definition.trigger
    if checkpoint is None or trigger.mode != "realtime":
        return trigger
    return trigger.model_copy(update={"checkpoint": checkpoint})
