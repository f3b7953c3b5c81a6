"""Plans the queries of pipelines, one each, and their task slots."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from zlib import crc32

from statecast_domains.errors import PipelineFileError
from statecast_domains.sections import TriggerSection
from statecast_domains.source_sections import SourceSection
from stream_processor.errors import TooFewSlotsError
from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic

MICRO_BATCH_SLOTS = 2
"""Task slots shared by micro-batch queries that run alone; their tasks end, so that fewer slots only slow them."""

MIN_CHECKPOINT = timedelta(seconds=5)
"""Spark's least interval."""

GROWN = (
    "only the order of offsets says which row of a key is the newest, and there is none between partitions, so keys "
    "that have moved would keep old rows; write the rows to a new topic with so many partitions, and read that by a "
    "pipeline with a new name and sink"
)
START_ANEW = "the process has the rows that stood there before; start it anew"
NEW_SINK = "its keys stand in other partitions than readers look for them; give the pipeline a new name and sink"
FORMER_PARALLELISM = 2
"""That of files without the key when the state of an older release was made."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


@dataclass(frozen=True)
class TopicState:
    """A topic as it is at a moment. `id` is Kafka's; a topic that was deleted and recreated has another one."""

    id: str
    partitions: int


UNSEEN = TopicState("", 0)
"""The state of a topic that the ACLs hide."""


@dataclass(frozen=True)
class QueryPlan:
    """The streaming query of a pipeline, which writes the dead letters of its sources, too.

    A table join has two `source_topics`; `partitions` are those of each. `parallelism` is the number of tasks that read
    each source with so many partitions, and of parts of the state. `shuffles` follow upon the source: one by the rows,
    for an aggregate another by the groups, none for a pipeline that keeps no state. `tasks` run at once, for good in
    real-time mode. `epoch` is the life of the checkpoint. Without a checkpoint the query begins at `starts`, offsets by
    partition, or at the beginning. `topics` are those that it reads, and its sink, as they were when it was planned.
    """

    name: str
    pipeline: Pipeline
    source_topics: tuple[str, ...]
    sink_topic: str
    trigger: TriggerSection
    partitions: tuple[int, ...]
    parallelism: int = 1
    shuffles: int = 0
    epoch: int = 0
    starts: Mapping[int, int] | None = None
    sink_partitions: int = 0
    topics: Mapping[str, TopicState] = field(default_factory=dict)

    @property
    def source_partitions(self) -> int:
        return sum(self.partitions)

    @property
    def tasks(self) -> int:
        readers = sum(min(each, self.parallelism) for each in self.partitions)
        if readers == self.parallelism == 1:
            return 1  # OneTask.java removes the shuffles of a real-time query, and Spark those after coalesce(1)
        return readers + self.shuffles * self.parallelism

    def going_on(self, parts: int) -> "QueryPlan":
        """Returns the plan for a state that has so many parts already, unless the file says how many."""
        return self if self.pipeline.definition.parallelism else replace(self, parallelism=parts)

    @property
    def counts(self) -> bool:
        """Whether its sequences are its own or offsets: their epoch begins anew with each checkpoint."""
        by_offset = self.shuffles > 0 and self.pipeline.ordered_by_offset
        return by_offset or self.pipeline.counts

    @property
    def realtime(self) -> bool:
        return self.trigger.mode == "realtime"

    @property
    def first_checkpoint(self) -> timedelta:
        """The time until its first checkpoint in real-time mode, by its name: MIN_CHECKPOINT to a whole interval.

        Spark plans a query anew after each checkpoint. Queries that start together would otherwise plan together, and
        wait for each other, each time.
        """
        share = crc32(self.name.encode()) / 2**32
        return MIN_CHECKPOINT + share * (self.trigger.checkpoint - MIN_CHECKPOINT)

    @property
    def joined_topics(self) -> list[str]:
        """Returns the keyed topics that are looked up as tables."""
        return list(dict.fromkeys(join.topic for join in self.pipeline.joins))

    @property
    def by_offset(self) -> list[str]:
        """Returns the source topics with offsets that order the rows of its state."""
        readings = self.pipeline.readers if self.shuffles else ()
        return [read.source_topic for read in readings if read.ordered_by_offset]

    def at(self, topics: Mapping[str, TopicState]) -> "QueryPlan":
        """Returns the plan with those of the topics that are its own."""
        own = [*self.source_topics, *self.joined_topics, self.sink_topic]
        return replace(self, topics={name: topics[name] for name in own})

    def fixed_partitions(self, topic: str) -> str | None:
        """Returns why a topic of the query must keep its number of partitions, and the remedy.

        Returns None if it may have more.
        """
        if topic in self.by_offset:
            return GROWN
        if topic in self.joined_topics:
            return START_ANEW
        return NEW_SINK if topic == self.sink_topic and self.shuffles else None


def topics_of(pipelines: Sequence[Pipeline]) -> set[str]:
    """Returns every topic that must exist before the pipelines start."""
    sources = {topic for pipeline in pipelines for topic in pipeline.source_topics}
    sinks = {pipeline.sink_topic for pipeline in pipelines}
    tables = {join.topic for pipeline in pipelines for join in pipeline.joins}
    return sources | sinks | tables | {dead_letter_topic(topic) for topic in sources}


def access_of(pipelines: Sequence[Pipeline]) -> dict[str, set[str]]:
    """Returns the operations, by Kafka's names, that the ACLs of each of these topics must allow."""
    # Sinks are read for the metrics of written records, dead letters to count them.
    access = {topic: {"Read"} for topic in topics_of(pipelines)}
    for each in pipelines:
        access[each.sink_topic] |= {"Write", "DescribeConfigs"}
        for read in each.readers:
            access[dead_letter_topic(read.source_topic)] |= {"Write", "DescribeConfigs"}
            # The compaction matters of a table, of events, and of changes to a pipeline that keeps their rows.
            if read.table is not None or read.events or read.shuffles:
                access[read.source_topic] |= {"DescribeConfigs"}
    return access


def check_together(pipelines: Sequence[Pipeline]) -> None:
    """Raises PipelineFileError if pipelines that are fine alone cannot run side by side."""
    names: dict[str, str] = {}
    sinks: dict[str, str] = {}
    for pipeline in pipelines:
        sink = pipeline.definition.sink
        if (other := names.setdefault(pipeline.name, pipeline.file)) != pipeline.file:
            raise PipelineFileError(pipeline.file, "name", f"{pipeline.name} is also the name of {other}")
        if (other := sinks.setdefault(sink.topic, pipeline.file)) != pipeline.file:
            raise PipelineFileError(pipeline.file, "sink.topic", f"{sink.topic} is also written by {other}")
    readings = [read for pipeline in pipelines for read in pipeline.readers]
    _check_one_form(readings)
    for pipeline in pipelines:
        readers = [each for each in readings if each.source_topic == pipeline.sink_topic]
        if any(each.table is None and not each.events for each in readers):
            problem = "is a source topic; a keyed topic holds no changes: its readers say source.format: table"
            raise PipelineFileError(pipeline.file, "sink.topic", problem)
        for reader in readers:
            _check_chained(pipeline, reader)
    _check_sinks(pipelines)
    _check_no_cycle(pipelines)


def _check_sinks(pipelines: Sequence[Pipeline]) -> None:
    """Raises PipelineFileError if one writes where dead letters go, or one joins a topic that has no such table."""
    letters = {dead_letter_topic(topic): each.name for each in pipelines for topic in each.source_topics}
    writers = {each.sink_topic: each for each in pipelines}
    for pipeline in pipelines:
        if (other := letters.get(pipeline.sink_topic)) is not None:
            raise PipelineFileError(pipeline.file, "sink.topic", f"is the dead-letter topic of {other}")
        for number, join in enumerate(pipeline.joins):
            writer = writers.get(join.topic)
            if writer is None:
                continue
            if not writer.keeps_rows or len(writer.written_under) > 1:
                problem = f"is written by {writer.name}, which keeps no single record per group: nothing would be found"
                raise PipelineFileError(pipeline.file, f"joins[{number}].topic", problem)
            if join.message.full_name != writer.sink.full_name:
                problem = f"is {join.message.full_name}, but {writer.name} writes {writer.sink.full_name} there"
                raise PipelineFileError(pipeline.file, f"joins[{number}].message", problem)


def _check_one_form(readings: Sequence[Pipeline]) -> None:
    """Raises PipelineFileError if two read the same topic as different things."""
    sources: dict[str, SourceSection] = {}
    for each in readings:
        source = each.definition.source
        first = sources.setdefault(source.topic, source)
        for key in ("message", "format", "values", "epoch"):
            if (agreed := getattr(first, key)) != getattr(source, key):
                problem = f"is {agreed} of {source.topic}, by another file"
                raise PipelineFileError(each.file, f"{each.section}.{key}", problem)


def _check_chained(writer: Pipeline, reader: Pipeline) -> None:
    """Raises PipelineFileError if `reader` cannot read, as a table or events, the topic that `writer` writes."""
    for key, problem in _misread_sink(writer, reader):
        raise PipelineFileError(reader.file, f"{reader.section}.{key}", problem)


def _misread_sink(writer: Pipeline, reader: Pipeline) -> Iterator[tuple[str, str]]:
    values = reader.definition.source.row_values
    if not writer.keeps_rows:
        if not reader.events:
            yield "topic", f"is a plain topic, which {writer.name} writes: it holds no table but events"
        if values != "protobuf":
            yield "values", f"is {values}, but {writer.name} writes protobuf there"
        if reader.deduplicate is None:
            yield "deduplicate", f"is missing: after a crash {writer.name} writes records again"
    else:
        if reader.events:
            yield "format", f"is events, but {writer.name} keeps rows there: read them by format: table"
        if values != "state-record":
            yield "values", f"is {values}, but {writer.name} writes state-records there"
    if reader.row.full_name != writer.sink.full_name:
        yield "message", f"is {reader.row.full_name}, but {writer.name} writes {writer.sink.full_name} there"


def _check_no_cycle(pipelines: Sequence[Pipeline]) -> None:
    """Raises PipelineFileError, which names the cycle, if a pipeline reads a result of its own output."""
    writers = {each.sink_topic: each for each in pipelines}
    for pipeline in pipelines:
        chains = [[pipeline]]
        while chains:
            chain = chains.pop()
            for read in chain[0].readers:
                before = writers.get(read.source_topic)
                if before is pipeline:
                    names = " → ".join(each.name for each in (*chain, chain[0]))
                    raise PipelineFileError(pipeline.file, "source.topic", f"is derived from its own sink: {names}")
                if before is not None and before not in chain:
                    chains.append([before, *chain])


def plan(
    pipelines: Sequence[Pipeline], partitions: Mapping[str, int], checkpoint: timedelta | None = None
) -> list[QueryPlan]:
    """Returns the queries, by the number of partitions of each topic; `checkpoint` overrides the files' intervals."""
    plans = []
    for pipeline in pipelines:
        sources, sink = pipeline.source_topics, pipeline.sink_topic
        taken = tuple(partitions[each] for each in sources)
        counts = taken, pipeline.definition.parallelism or 1, pipeline.shuffles
        planned = QueryPlan(pipeline.name, pipeline, sources, sink, _trigger(pipeline, checkpoint), *counts)
        plans.append(replace(planned, sink_partitions=partitions[sink]))
    return plans


def _trigger(pipeline: Pipeline, checkpoint: timedelta | None) -> TriggerSection:
    trigger = pipeline.definition.trigger
    if checkpoint is None or trigger.mode != "realtime":
        return trigger
    return trigger.model_copy(update={"checkpoint": checkpoint})


def begun(plans: Sequence[QueryPlan], starts: Callable[[str, str], dict[int, int] | None]) -> list[QueryPlan]:
    """Adds the place where each plan begins without a checkpoint; `starts` is that of Topics. May raise KafkaException.

    Those that begin in one way at one topic begin at the same records.
    """
    offsets = {way: starts(*way) for way in {_way(each) for each in plans}}
    return [replace(each, starts=offsets[_way(each)]) for each in plans]


def _way(plan: QueryPlan) -> tuple[str, str]:
    return plan.source_topics[0], plan.pipeline.definition.source.starting_offsets


def choose_master(master: str, slots: int, cores: int, spare: int = 0) -> str:
    """Returns the master to use: `master` as set, or `local[slots + spare]`.

    Raises TooFewSlotsError if a local one is small. `cores` is the meaning of `*` in `local[*]`. How many slots a
    cluster gives is known when its executors have come.
    """
    if not master:
        return f"local[{slots + spare}]"
    local = _LOCAL.fullmatch(master)
    if local is not None:
        offered = {None: 1, "*": cores}.get(local[1]) or int(local[1])
        if offered < slots:
            raise TooFewSlotsError(
                f"STREAM_PROCESSOR_MASTER: {master} gives {offered} task slots, the pipelines need {slots}: "
                f"leave it empty or set local[{slots}]"
            )
    return master


def slots_needed(plans: Sequence[QueryPlan]) -> int:
    """Returns the slots that the queries take when all their tasks run: real-time tasks fail that find one too few.

    So the tasks of micro-batch queries count, too, when real-time queries run beside them: they take every slot that is
    free, and one that a real-time query leaves between two of its batches is not given back in time.
    """
    if any(each.realtime for each in plans):
        return sum(each.tasks for each in plans)
    return MICRO_BATCH_SLOTS if plans else 1
