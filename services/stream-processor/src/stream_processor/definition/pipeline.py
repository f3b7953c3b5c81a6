"""What a pipeline does, in terms of the contract: its file with every name resolved."""

from dataclasses import dataclass
from datetime import timedelta

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from stream_processor.definition.aggregates import Aggregate
from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline_file import PipelineFile
from stream_processor.definition.sections import Shape


@dataclass(frozen=True)
class Join:
    """A keyed topic as a table of `message`s: the row whose key is the text at `key` is there as `name`."""

    topic: str
    message: Descriptor
    key: FieldPath
    name: str


@dataclass(frozen=True)
class Selected:
    """A field of the sink's message, and the SQL on the row and the joined tables that fills it."""

    field: FieldDescriptor
    sql: str


@dataclass(frozen=True)
class Window:
    """Splits groups by the time at `time` into windows of `size`, open until `lateness` after their end."""

    time: FieldPath
    size: timedelta
    lateness: timedelta


@dataclass(frozen=True)
class Pipeline:
    """What a pipeline does, in terms of the contract.

    `sink` is the message that is written: the row's own, unless `select` or `aggregates` fill another. `primary_key` is
    None of a route; `member` and `sort` are there for members, `aggregates`, `group_field` and maybe `window` for an
    aggregate, `operations` (names of statecast.change.v1.Operation) and maybe `explode` for a route. `largest_record`
    and `largest_letter` are how many bytes the sink's and the dead letters' topic take, known when the pipeline runs.
    """

    file: str
    definition: PipelineFile
    change: Descriptor
    row: Descriptor
    sink: Descriptor
    group: FieldPath
    primary_key: FieldPath | None = None
    member: FieldPath | None = None
    sort: FieldPath | None = None
    aggregates: tuple[Aggregate, ...] = ()
    group_field: FieldDescriptor | None = None
    window: Window | None = None
    joins: tuple[Join, ...] = ()
    select: tuple[Selected, ...] = ()
    explode: FieldPath | None = None
    operations: tuple[str, ...] = ()
    largest_record: int | None = None
    largest_letter: int | None = None

    @property
    def name(self) -> str:
        """The pipeline's name, unique among those that run together."""
        return self.definition.name

    @property
    def shape(self) -> Shape:
        """The form of what a group keeps."""
        return self.definition.keep.shape
