"""Describes a pipeline by the contract and in lines for people: a class per shape, with resolved names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, TypeAlias, get_args

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from statecast_domains.pipeline_file import PipelineFile
from statecast_domains.source_sections import JoinType, RowValues
from statecast_domains.values import EARLIEST, human
from stream_processor.pipeline.fields import FieldPath, KeyPaths

AggregateFunction = Literal["count", "sum", "avg", "min", "max", "collect_set"]
AGGREGATE_FUNCTIONS: tuple[AggregateFunction, ...] = get_args(AggregateFunction)
TRUNCATED = "_truncated"
MAX_SET, MAX_MAX_SET = 1_000, 10_000
"""Bounds the values of a set: the default, and the most that a file may ask for."""
WINDOW_FIELDS = ("window_start", "window_end")


@dataclass(frozen=True)
class Join:
    """A keyed topic as a table of `message`s: the row with the text at `key` as its key is available as `name`."""

    topic: str
    message: Descriptor
    key: FieldPath
    name: str


@dataclass(frozen=True)
class Aggregate:
    """A field of a group's message, and the function that fills it; `argument` is SQL on the row, None of count(*).

    `limit` is how many values a set has at most; the name of the field that says whether it lacks some is `truncated`.
    """

    field: FieldDescriptor
    function: AggregateFunction
    argument: str | None
    limit: int = 0

    @property
    def truncated(self) -> str:
        return f"{self.field.name}{TRUNCATED}"

    def __str__(self) -> str:
        limit = f", {self.limit}" if self.limit else ""
        return f"{self.function}({self.argument or '*'}{limit})"


@dataclass(frozen=True)
class Window:
    """Splits groups by the time at `time` into windows of `size`, open until `lateness` after their end.

    One begins every `hop`, which is at most `size`. It is deleted `keep` after its end; None is never.
    """

    time: FieldPath
    size: timedelta
    hop: timedelta
    lateness: timedelta
    keep: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class PipelineBase:
    """Holds the parts that pipelines of all shapes have.

    `row` is the message of a row before and after a `change`, and both are that of a table's rows; `sink` is the
    message that is written. The `section` of the file names the source. The sink's topic takes payloads, and the
    dead-letter topic records, of at most so many bytes; None until Kafka was asked. Rows of a topic of changes are
    exchanged between tasks `shuffles_of_changes` times on the way to the sink. Events with the same values at
    `deduplicate` are one, and `time` tells which is the newest, if the file names them.
    """

    shuffles_of_changes: ClassVar[int]

    file: str
    definition: PipelineFile
    change: Descriptor
    row: Descriptor
    sink: Descriptor
    section: str = "source"
    deduplicate: KeyPaths | None = None
    time: FieldPath | None = None
    max_payload_bytes: int | None = None
    max_dead_letter_bytes: int | None = None

    @property
    def name(self) -> str:
        """Unique among the pipelines that run together."""
        return self.definition.name

    @property
    def keyed_by_record(self) -> bool:
        """Whether the connector's record key, where it is JSON, tells rows apart: the file does not say their key."""
        source = self.definition.source
        return source.format == "debezium-json" and source.key is None

    @property
    def table(self) -> RowValues | None:
        """The form of the source's values, if it is a table: the records' keys tell its rows apart. Else None."""
        return self.definition.source.table

    @property
    def events(self) -> bool:
        """Whether each record is a row of its own, which never changes."""
        return self.definition.source.events

    @property
    def shuffles(self) -> int:
        """How often rows are exchanged between tasks on the way to the sink; an event has no earlier row to look up."""
        if not self.events:
            return self.shuffles_of_changes
        return min(self.shuffles_of_changes, 1) + (self.deduplicate is not None)

    @property
    def ordered_by_offset(self) -> bool:
        """Whether the order of a row's records is their offset, which counts in the life of the checkpoint."""
        return self.table in ("protobuf", "json")

    @property
    def may_be_truncated(self) -> bool:
        """Whether the source can tell that its table was truncated."""
        return self.definition.source.format == "debezium-json"

    @property
    def source_topic(self) -> str:
        return self.definition.source.topic

    @property
    def sink_topic(self) -> str:
        return self.definition.sink.topic


@dataclass(frozen=True, kw_only=True)
class RowPipeline(PipelineBase):
    """A pipeline that writes rows, or the message that its file selects of a row and of the joined rows."""

    joins: tuple[Join, ...] = ()

    @property
    def select(self) -> Mapping[str, str]:
        """By field of the sink's message, the SQL that fills it; empty where rows are written as they are."""
        return self.definition.select or {}


@dataclass(frozen=True, kw_only=True)
class LatestPipeline(RowPipeline):
    """Keeps the newest row of each key."""

    shuffles_of_changes = 1
    primary_key: KeyPaths

    @property
    def group(self) -> KeyPaths:
        """The key of the topic's records, which is the row's own."""
        return self.primary_key


@dataclass(frozen=True, kw_only=True)
class JoinSide(LatestPipeline):
    """A table of a join, as a pipeline that reads it alone: its records have the keys at `primary_key`."""


@dataclass(frozen=True, kw_only=True)
class TableJoinPipeline(LatestPipeline):
    """Keeps a row per key of two tables, made of the rows that they have under it; the source's side is the first."""

    sides: tuple[JoinSide, JoinSide]
    joined_as: str
    join_type: JoinType


@dataclass(frozen=True, kw_only=True)
class MembersPipeline(RowPipeline):
    """Keeps the rows of each group, by their `sort` value."""

    shuffles_of_changes = 1
    group: KeyPaths
    primary_key: KeyPaths
    member: KeyPaths
    sort: FieldPath


@dataclass(frozen=True, kw_only=True)
class AggregatePipeline(PipelineBase):
    """Keeps one message per group, and window if there are any; the group stands in its `group_fields`, one per path.

    Without a `primary_key` rows are told apart by the connector's record key alone.
    """

    shuffles_of_changes = 2
    numbers_key = "keep.aggregate"
    group: KeyPaths
    primary_key: KeyPaths | None
    aggregates: tuple[Aggregate, ...]
    group_fields: tuple[FieldDescriptor, ...]
    window: Window | None = None


@dataclass(frozen=True, kw_only=True)
class RoutePipeline(RowPipeline):
    """Keeps nothing: passes on rows of these `operations` (names of statecast.change.v1.Operation)."""

    shuffles_of_changes = 0
    group: KeyPaths
    operations: tuple[str, ...]
    explode: FieldPath | None = None


@dataclass(frozen=True, kw_only=True)
class TotalsPipeline(RowPipeline):
    """A route with records that carry the sums of their group so far: the `aggregates`.

    Without a `primary_key` rows are told apart by the connector's record key alone.
    """

    shuffles_of_changes = 2
    numbers_key = "keep.route.totals"
    window = None
    group: KeyPaths
    primary_key: KeyPaths | None
    operations: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


KeyPipeline: TypeAlias = LatestPipeline | MembersPipeline
"""Writes a row under each of its keys."""
SummingPipeline: TypeAlias = AggregatePipeline | TotalsPipeline
"""Adds up the contributions of rows to their groups; `numbers_key` of the file says how."""
StatefulPipeline: TypeAlias = KeyPipeline | SummingPipeline
"""Remembers the keys or contributions of each row."""
Pipeline: TypeAlias = StatefulPipeline | RoutePipeline


def inputs_of(pipeline: Pipeline) -> tuple[Pipeline, ...]:
    """The pipeline as the reader of each of its source topics."""
    return pipeline.sides if isinstance(pipeline, TableJoinPipeline) else (pipeline,)


def source_topics_of(pipeline: Pipeline) -> tuple[str, ...]:
    """The topics of which the pipeline takes up each record; the tables of `joins` are none of them."""
    return tuple(each.source_topic for each in inputs_of(pipeline))


def dead_letter_topic(source_topic: str) -> str:
    """The topic of a source topic's dead letters."""
    return f"{source_topic}.dead-letter"


def explain(pipeline: Pipeline) -> list[str]:
    """A headline, and a line per step: reading, the row, the state, writing."""
    return [
        f"{pipeline.name}: {pipeline.definition.keep.shape}, from {pipeline.file}",
        *(f"  {name:<12}{text}" for name, text in _steps(pipeline)),
    ]


def _steps(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    definition, trigger = pipeline.definition, pipeline.definition.trigger
    yield from _reads(pipeline)
    if isinstance(pipeline, TableJoinPipeline):
        _, other = pipeline.sides
        yield "join", f"{other.source_topic} as {pipeline.joined_as}, by the records' keys: {pipeline.join_type}"
    if isinstance(pipeline, RowPipeline):
        for join in pipeline.joins:
            yield "join", f"{join.topic} as {join.name}, by {join.key}: {join.message.full_name}, followed as a table"
        if isinstance(pipeline, RoutePipeline) and pipeline.explode is not None:
            yield "explode", f"{pipeline.explode}: a record per element"
        for name, sql in pipeline.select.items():
            yield "select", f"{name} = {sql}"
    yield from _state(pipeline)
    placed = "" if definition.sink.partition_by is None else f", in the partition by {definition.sink.partition_by}"
    yield "write", f"{pipeline.sink_topic}: {pipeline.sink.full_name} under {_key(pipeline)}{placed}"
    limit = definition.dead_letters.limit
    for topic in map(dead_letter_topic, source_topics_of(pipeline)):
        yield "set aside", f"{topic}: what cannot be used; {limit} at most"
    realtime = f"realtime, a checkpoint every {human(trigger.checkpoint)}"
    batches = f"micro-batch, a batch every {human(trigger.interval)}, of {trigger.max_records} records at most"
    yield "run", realtime if trigger.mode == "realtime" else batches


def _reads(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    definition, source = pipeline.definition, pipeline.definition.source
    since = "" if source.starting_offsets == EARLIEST else f", from {source.starting_offsets} on"
    for each in inputs_of(pipeline):
        read = each.definition.source
        form = read.format if read.row_values is None else f"{read.format} of {read.row_values} values"
        yield "read", f"{read.topic}: {read.message} as {form}{since}"
    if definition.where_key is not None:
        yield "where key", f"matches {definition.where_key}"
    if definition.where is not None:
        yield "where", definition.where
    if (same := source.deduplicate) is not None:
        yield "deduplicate", f"by {pipeline.deduplicate}, within {human(same.within)}"


def _key(pipeline: Pipeline) -> str:
    parts = [str(pipeline.group)]
    if isinstance(pipeline, MembersPipeline):
        parts += [str(pipeline.sort), str(pipeline.member)]
    elif isinstance(pipeline, AggregatePipeline) and pipeline.window is not None:
        parts += WINDOW_FIELDS
    return " + ".join(parts)


def _state(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if isinstance(pipeline, RoutePipeline):
        rows = "events" if pipeline.events else "rows of these changes"
        of = "" if pipeline.events else f": {_operations(pipeline)}"
        yield "keep", f"nothing; {rows} are passed on, at least once{of}"
        return
    sums = isinstance(pipeline, AggregatePipeline | TotalsPipeline)
    if pipeline.events:
        if not sums:
            yield "remember", f"per key: the newest event, by {pipeline.time or 'the time of its record'}"
        yield from _numbers(pipeline)
        return
    what = "what the row adds to its groups" if sums else "the keys that the row stands under"
    forget = human(pipeline.definition.forget_deleted)
    if isinstance(pipeline, TableJoinPipeline):
        yield "remember", f"per key of both tables' records: the rows of both; for {forget} after both are gone"
        return
    of_record = "key of the table's records" if pipeline.table else "key of the connector's records"
    key = of_record if pipeline.table or pipeline.keyed_by_record else str(pipeline.primary_key)
    yield "remember", f"per {key}: {what}; for {forget} after it is gone"
    yield from _numbers(pipeline)


def _numbers(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if not isinstance(pipeline, AggregatePipeline | TotalsPipeline):
        return
    if (window := pipeline.window) is not None:
        every = "" if window.hop == window.size else f" every {human(window.hop)}"
        until = "" if window.keep is None else f", deleted {human(window.keep)} after it"
        final = f"final {human(window.lateness)} after its end"
        yield "window", f"{human(window.size)}{every} by {window.time}; {final}{until}"
    for each in pipeline.aggregates:
        yield "keep", f"per group: {each.field.name} = {each}"
    if isinstance(pipeline, TotalsPipeline):
        text = "are passed on with what their group has then, at least once"
        of = "events" if pipeline.events else "rows of these changes"
        yield "pass on", f"{of} {text}" + ("" if pipeline.events else f": {_operations(pipeline)}")


def _operations(pipeline: RoutePipeline | TotalsPipeline) -> str:
    return ", ".join(name.removeprefix("OPERATION_").lower() for name in pipeline.operations)
