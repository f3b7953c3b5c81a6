"""What a pipeline does, in terms of the contract: a class for each shape, with every name of the file resolved."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, TypeAlias, get_args

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from typing_extensions import override

from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline_file import PipelineFile
from stream_processor.definition.sections import Shape

AggregateFunction = Literal["count", "sum", "avg", "min", "max"]
AGGREGATE_FUNCTIONS: tuple[AggregateFunction, ...] = get_args(AggregateFunction)


@dataclass(frozen=True)
class Join:
    """A keyed topic as a table of `message`s: the row whose key is the text at `key` is available as `name`."""

    topic: str
    message: Descriptor
    key: FieldPath
    name: str


@dataclass(frozen=True)
class Selection:
    """A field of the sink's message, and the SQL on the row and the joined tables that fills it."""

    field: FieldDescriptor
    sql: str


@dataclass(frozen=True)
class Aggregate:
    """A field of a group's message, and the function that fills it; `argument` is SQL on the row, None of count(*)."""

    field: FieldDescriptor
    function: AggregateFunction
    argument: str | None


@dataclass(frozen=True)
class Window:
    """Splits groups by the time at `time` into windows of `size`, open until `lateness` after their end."""

    time: FieldPath
    size: timedelta
    lateness: timedelta


@dataclass(frozen=True, kw_only=True)
class PipelineBase:
    """What pipelines of all shapes have.

    `row` is the message of a row before and after a `change`; `sink` is the message that is written. The sink's topic
    and the dead-letter topic take records of at most so many bytes; None until Kafka was asked.
    """

    shape: ClassVar[Shape]
    shuffles: ClassVar[int]
    """The number of times that rows are exchanged between tasks on the way to the sink."""

    file: str
    definition: PipelineFile
    change: Descriptor
    row: Descriptor
    sink: Descriptor
    group: FieldPath
    max_record_bytes: int | None = None
    max_dead_letter_bytes: int | None = None

    @property
    def name(self) -> str:
        """The pipeline's name, unique among those that run together."""
        return self.definition.name

    @property
    def source_topic(self) -> str:
        """The topic of the changes."""
        return self.definition.source.topic

    @property
    def sink_topic(self) -> str:
        """The topic that is written."""
        return self.definition.sink.topic

    @property
    def key_parts(self) -> Sequence[str]:
        """What a record's key consists of, for people."""
        return [str(self.group)]


@dataclass(frozen=True, kw_only=True)
class RowPipeline(PipelineBase):
    """A pipeline that writes rows; `select` makes another message of a row and of the rows that it is joined with."""

    joins: tuple[Join, ...] = ()
    select: tuple[Selection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LatestPipeline(RowPipeline):
    """Keeps the newest row of each key."""

    shape = "latest"
    shuffles = 1
    primary_key: FieldPath


@dataclass(frozen=True, kw_only=True)
class MembersPipeline(RowPipeline):
    """Keeps the rows of each group, by their `sort` value."""

    shape = "members"
    shuffles = 1
    primary_key: FieldPath
    member: FieldPath
    sort: FieldPath

    @property
    @override
    def key_parts(self) -> Sequence[str]:
        return [str(self.group), str(self.sort), str(self.member)]


@dataclass(frozen=True, kw_only=True)
class AggregatePipeline(PipelineBase):
    """Keeps one message per group, and window if there are any; the group stands in its `group_field`."""

    shape = "aggregate"
    shuffles = 2
    primary_key: FieldPath
    aggregates: tuple[Aggregate, ...]
    group_field: FieldDescriptor
    window: Window | None = None

    @property
    @override
    def key_parts(self) -> Sequence[str]:
        return [str(self.group), *(("window_start", "window_end") if self.window else ())]


@dataclass(frozen=True, kw_only=True)
class RoutePipeline(RowPipeline):
    """Keeps nothing: passes on rows of these `operations` (names of statecast.change.v1.Operation)."""

    shape = "route"
    shuffles = 0
    operations: tuple[str, ...]
    explode: FieldPath | None = None


KeyPipeline: TypeAlias = LatestPipeline | MembersPipeline
"""Writes a row under each of its keys."""
StatefulPipeline: TypeAlias = KeyPipeline | AggregatePipeline
"""Remembers what each row stood for."""
Pipeline: TypeAlias = StatefulPipeline | RoutePipeline


def dead_letter_topic(source_topic: str) -> str:
    """The topic of a source topic's dead letters."""
    return f"{source_topic}.dead-letter"
