"""Describes a pipeline by the contract: the names of its file, resolved, and the facts that each shape provides."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, get_args

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from typing_extensions import override

from statecast_domains.pipeline_file import PipelineFile
from statecast_domains.source_sections import RowValues
from statecast_domains.values import EARLIEST, human
from stream_processor.pipeline.decimals import decimal_of
from stream_processor.pipeline.fields import FieldPath, KeyPaths

if TYPE_CHECKING:  # a file is checked without Spark
    from pyspark.sql import Column, DataFrame

    from stream_processor.pipeline.compile import Compilation
    from stream_processor.steps.functions import Functions

AggregateFunction = Literal["count", "sum", "avg", "min", "max", "collect_set"]
AGGREGATE_FUNCTIONS: tuple[AggregateFunction, ...] = get_args(AggregateFunction)
TRUNCATED = "_truncated"
WINDOW_FIELDS = ("window_start", "window_end")
Line = tuple[str, str]
"""A step of a pipeline, for people: its name and its description."""


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

    @property
    def may_be_null(self) -> bool:
        """Whether it is a sum with a field that tells null from 0: an optional one, or a decimal (empty if null)."""
        return self.function == "sum" and (self.field.has_presence or decimal_of(self.field) is not None)

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


class RowKey(NamedTuple):
    """The key of a row on its topic: its `name` and `paths` in the file, and the `columns` of all parts beside it.

    `mismatch` is the problem of a table's record with another key than the one at `paths`.
    """

    name: str
    paths: KeyPaths
    columns: tuple[str, ...]
    mismatch: str


@dataclass(frozen=True, kw_only=True)
class Pipeline(ABC):
    """A pipeline of one shape; each module of `stream_processor.shapes` has a class of them.

    A shape is the part of it that depends on the state that it keeps. It

    - checks its file in `compiled`, and describes its steps to people in `state` and `own_lines`
    - says which keys a row needs: `row_key`, `key_problem` and `checked`
    - makes the records of its topic from changes: `records`
    - names the facts that its checkpoint depends on: `shuffles_of_changes`, `counts` and `meaning`

    `row` is the message of a row before and after a `change`, and both are that of a table's rows; `sink` is the
    message that is written. The `section` of the file names the source. Rows stand in the groups of the values at
    `group`; `primary_key` tells rows apart, and is None where the file does not say how. Each element at `explode`
    gives a record, if it is there. Events with the same values at `deduplicate` are one, and `time` tells which is the
    newest, if the file names them. The sink's topic takes payloads, and the dead-letter topic records, of at most so
    many bytes; None until Kafka was asked.
    """

    shuffles_of_changes: ClassVar[int]
    """How often rows of a topic of changes are exchanged between tasks; 0 if no state knows them."""
    keeps_rows: ClassVar[bool] = True
    """Whether the sink is a keyed topic of StateRecords, and no plain topic of messages."""

    file: str
    definition: PipelineFile
    change: Descriptor
    row: Descriptor
    sink: Descriptor
    group: KeyPaths
    primary_key: KeyPaths | None = None
    joins: tuple[Join, ...] = ()
    explode: FieldPath | None = None
    section: str = "source"
    deduplicate: KeyPaths | None = None
    time: FieldPath | None = None
    max_payload_bytes: int | None = None
    max_dead_letter_bytes: int | None = None

    @classmethod
    @abstractmethod
    def compiled(cls, names: "Compilation") -> Self:
        """Returns the pipeline of a file. Raises PipelineFileError for a file that the shape does not allow."""

    @property
    @abstractmethod
    def counts(self) -> bool:
        """Whether the sequences of the topic's records are counts, in the life of the checkpoint."""

    @abstractmethod
    def state(self) -> Iterator[Line]:
        """Yields lines about the state that the pipeline remembers and keeps."""

    @abstractmethod
    def key_problem(self, name: str, row: "Column") -> "Column":
        """Returns why the row (`name` in the reason) cannot have keys; null when it can, or when there is no row.

        A row before the change that lacks a part of its key needs none.
        """

    @abstractmethod
    def records(self, read: Sequence["DataFrame"], partitions: int, epoch: int, functions: "Functions") -> "DataFrame":
        """Returns the `key`, `value` and LETTER of the records that are written, of a keyed topic with more columns.

        `read` has the sound changes and the letters of each of the `readers`, of events those that count. The topic has
        so many `partitions`; `epoch` is the checkpoint's. Raises PipelineFileError for SQL that Spark cannot compute.
        """

    @property
    def row_key(self) -> RowKey | None:
        """The key that tells rows apart on the topic; None where rows do not stand on it."""
        return None

    @property
    def payload_rows(self) -> int:
        """How many rows' bytes a record has at most; 0 if its size does not follow from a row's."""
        return 1

    def checked(self, changes: "DataFrame") -> "DataFrame":
        """Sets `problem` of checked changes where only this shape has one."""
        return changes

    def passes(self, is_grouped: "Column") -> "Column":
        """Returns whether a change that no state knows counts; `is_grouped` says if the row after it is in a group."""
        return is_grouped

    def own_lines(self) -> Iterator[Line]:
        """Yields lines about the steps of a row before `select`."""
        yield from ()

    @property
    def written_under(self) -> tuple[str, ...]:
        """The parts of the records' keys, for people."""
        return (str(self.group),)

    def key_decimals(self) -> dict[str, object]:
        """Returns how keys write decimals, by path: an option of the fields says it, and no file."""
        paths = (*(self.primary_key.paths if self.primary_key else ()), *self.group.paths)
        return {str(path): path.decimal.scale for path in paths if path.decimal}

    def meaning(self) -> dict[str, object]:
        """Returns the facts about the content of the state that come from the contract, and from no file."""
        decimals = self.key_decimals()
        return {"decimals in keys": decimals} if decimals else {}

    def limited(self, payload_bytes: int, letter_bytes: Mapping[str, int]) -> Self:
        """Returns the pipeline with the bounds of its records: of a payload, and by topic of dead letters."""
        own = letter_bytes[dead_letter_topic(self.source_topic)]
        return replace(self, max_payload_bytes=payload_bytes, max_dead_letter_bytes=own)

    @property
    def readers(self) -> tuple["Pipeline", ...]:
        """The pipeline as the reader of each of its source topics."""
        return (self,)

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics of which the pipeline takes up each record; the tables of `joins` are none of them."""
        return tuple(each.source_topic for each in self.readers)

    @property
    def name(self) -> str:
        """Unique among the pipelines that run together."""
        return self.definition.name

    @property
    def select(self) -> Mapping[str, str]:
        """By field of the sink's message, the SQL that fills it; empty where rows are written as they are."""
        return self.definition.select or {}

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
    def knows_rows(self) -> bool:
        """Whether a state knows the last change of each row."""
        return self.shuffles_of_changes > 0 and not self.events

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

    def remembered(self, what: str) -> Line:
        """Returns the line about the facts that are remembered of each row."""
        of_record = "key of the table's records" if self.table else "key of the connector's records"
        key = of_record if self.table or self.keyed_by_record else str(self.primary_key)
        return "remember", f"per {key}: {what}; for {human(self.definition.forget_deleted)} after it is gone"


@dataclass(frozen=True, kw_only=True)
class SummingPipeline(Pipeline):
    """A pipeline that adds up the contributions of rows to their groups, as `numbers_key` of the file says.

    Without a `primary_key` rows are told apart by the connector's record key alone.
    """

    shuffles_of_changes = 2
    numbers_key: ClassVar[str]

    aggregates: tuple[Aggregate, ...]
    window: Window | None = None

    @override
    def state(self) -> Iterator[Line]:
        if not self.events:
            yield self.remembered("what the row adds to its groups")
        if (window := self.window) is not None:
            every = "" if window.hop == window.size else f" every {human(window.hop)}"
            until = "" if window.keep is None else f", deleted {human(window.keep)} after it"
            final = f"final {human(window.lateness)} after its end"
            yield "window", f"{human(window.size)}{every} by {window.time}; {final}{until}"
        for each in self.aggregates:
            yield "keep", f"per group: {each.field.name} = {each}"

    @override
    def meaning(self) -> dict[str, object]:
        """Names also the sums for which the state counts values that are not null: the type of their field says it."""
        counted = [each.field.name for each in self.aggregates if each.may_be_null]
        return super().meaning() | ({"sums that may be null": counted} if counted else {})


def dead_letter_topic(source_topic: str) -> str:
    """Returns the topic of a source topic's dead letters."""
    return f"{source_topic}.dead-letter"


def explain(pipeline: Pipeline) -> list[str]:
    """Returns a headline, and a line per step: reading, the row, the state, writing."""
    return [
        f"{pipeline.name}: {pipeline.definition.keep.shape}, from {pipeline.file}",
        *(f"  {name:<12}{text}" for name, text in _lines(pipeline)),
    ]


def _lines(pipeline: Pipeline) -> Iterator[Line]:
    definition, trigger = pipeline.definition, pipeline.definition.trigger
    yield from _reads(pipeline)
    for join in pipeline.joins:
        yield "join", f"{join.topic} as {join.name}, by {join.key}: {join.message.full_name}, followed as a table"
    yield from pipeline.own_lines()
    for name, sql in pipeline.select.items():
        yield "select", f"{name} = {sql}"
    yield from pipeline.state()
    placed = "" if definition.sink.partition_by is None else f", in the partition by {definition.sink.partition_by}"
    key = " + ".join(pipeline.written_under)
    yield "write", f"{pipeline.sink_topic}: {pipeline.sink.full_name} under {key}{placed}"
    limit = definition.dead_letters.limit
    for topic in map(dead_letter_topic, pipeline.source_topics):
        yield "set aside", f"{topic}: what cannot be used; {limit} at most"
    realtime = f"realtime, a checkpoint every {human(trigger.checkpoint)}"
    batches = f"micro-batch, a batch every {human(trigger.interval)}, of {trigger.max_records} records at most"
    yield "run", realtime if trigger.mode == "realtime" else batches


def _reads(pipeline: Pipeline) -> Iterator[Line]:
    definition, source = pipeline.definition, pipeline.definition.source
    since = "" if source.starting_offsets == EARLIEST else f", from {source.starting_offsets} on"
    for each in pipeline.readers:
        read = each.definition.source
        form = read.format if read.row_values is None else f"{read.format} of {read.row_values} values"
        yield "read", f"{read.topic}: {read.message} as {form}{since}"
    if definition.where_key is not None:
        yield "where key", f"matches {definition.where_key}"
    if definition.where is not None:
        yield "where", definition.where
    if (same := source.deduplicate) is not None:
        yield "deduplicate", f"by {pipeline.deduplicate}, within {human(same.within)}"
