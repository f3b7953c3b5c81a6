"""The form of a pipeline's YAML file: which keys there are and which go together, and the errors for wrong ones."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from statecast_domains import sections, source_sections
from statecast_domains.errors import PipelineFileError
from statecast_domains.section_files import read_sections, schema_of
from statecast_domains.sections import Section
from statecast_domains.values import EARLIEST, Duration, Paths, Sql


class PipelineFile(Section):
    """One pipeline: reads a topic of changes, rows or events, and writes a keyed topic or a plain one."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="The name of checkpoint and metrics.")
    source: source_sections.SourceSection
    where: Sql | None = Field(None, description="A SQL condition on the row.")
    where_key: str | None = Field(
        None,
        min_length=1,
        description="A regular expression of Java. The pipeline reads only records with a match in their key; of "
        "Debezium's JSON keys it sees the values' text.",
    )
    joins: list[source_sections.JoinSection] = Field([], description="Keyed topics to look up as tables.")
    table_join: source_sections.TableJoinSection | None = None
    select: dict[str, Sql] | None = Field(
        None, min_length=1, description="For each field of the sink's message, a SQL expression on the row."
    )
    explode: str | None = Field(None, description="For a route: a repeated path. Each element becomes a record.")
    group_by: Paths = Field(
        description="The path of the group, or a list of paths. One repeated path puts a row into many groups."
    )
    window: sections.WindowSection | None = None
    keep: sections.Keep
    insert_only: bool = Field(
        False, description="States that rows never change and are never deleted, so an aggregate may use min and max."
    )
    sink: sections.SinkSection
    store: sections.StoreSection | None = Field(
        None, description="For a keyed topic: its storage and its readers. Default: on disk, for staff."
    )
    forget_deleted: Duration = Field(
        "7d", validate_default=True, description="Time for which the state remembers deleted rows."
    )
    state: sections.StateSection | None = Field(
        None, description="Default: the state shares 256 MiB per executor with the other pipelines of the process."
    )
    parallelism: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Number of tasks that read each source, at most one per partition, and of parts of the state, each "
        "with a task. Default: the number that an existing state keeps, else 1: everything in one task.",
    )
    trigger: sections.TriggerSection = Field({}, validate_default=True)
    dead_letters: sections.DeadLettersSection = Field({}, validate_default=True)

    @property
    def row_message(self) -> str:
        """The full name of the message of the source's rows, which their change's name tells by convention."""
        return self.source.message if self.source.row_values else self.source.message.removesuffix("Change")

    @property
    def inserts_only(self) -> bool:
        """Whether rows are never changed or deleted."""
        return self.insert_only or self.source.events

    @property
    def sources(self) -> dict[str, source_sections.SourceSection]:
        """All that is read as changes or as a table, by the section of the file that says so."""
        joined = {} if self.table_join is None else {"table_join": self.table_join.source}
        return {"source": self.source, **joined}

    @property
    def sides(self) -> "tuple[PipelineFile, PipelineFile]":
        """The source and the table of table_join, each as in a file that keeps the latest of its rows alone."""
        if self.table_join is None:
            raise ValueError(f"{self.name} joins no tables")
        alone = self.model_copy(update={"table_join": None, "select": None, "store": None})
        other = {
            "source": self.table_join.source,
            "group_by": self.table_join.key or self.group_by,
            "where": None,
            "sink": self.sink.model_copy(update={"message": None}),
        }
        return alone, alone.model_copy(update=other)

    @property
    def kept_as(self) -> sections.StoreSection:
        """How the keyed topic is kept, and who may read it."""
        return self.store or sections.StoreSection.model_validate({})


LEASE, LOCK = "lease", "lock"
"""Names under which a process keeps others off its checkpoints: a pipeline's own would replace them."""

_SHAPES_WITH: dict[str, tuple[sections.Shape, ...]] = {
    "window": ("aggregate",),
    "insert_only": ("aggregate",),
    "explode": ("route",),
    "joins": ("latest", "members", "route"),
    "table_join": ("latest",),
    "select": ("latest", "members", "route"),
    "store": ("latest", "members", "aggregate"),
}
"""The shapes that have a use for a key."""


def read(file: Path) -> PipelineFile:
    """Returns the file's content. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    return read_sections(file, PipelineFile, PipelineFileError, "a pipeline")


def misplaced(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    """Yields the keys that have no meaning beside the others, or are missing beside them, each with its problem."""
    source, select, message = definition.source, definition.select, definition.sink.message
    if definition.name in (LEASE, LOCK):
        yield "name", "is that of a file beside the checkpoints: choose another one"
    yield from _of_other_formats(definition)
    yield from _of_a_late_start(definition)
    yield from _of_a_table_join(definition)
    if definition.sink.partition_by is not None and (problem := _no_partition_by(definition)) is not None:
        yield "sink.partition_by", problem
    shape = definition.keep.shape
    if shape == "aggregate" and source.key is None and source.format == "protobuf":
        yield "source.key", "is missing: an aggregate needs the row's primary key, to count each row once"
    yield from _of_other_shapes(definition)
    if definition.keep.route is not None:
        yield from _beside_totals(definition) if definition.keep.route.totals else _without_totals(definition)
    if shape == "aggregate" and message is None:
        yield "sink.message", "is missing: an aggregate needs a message whose fields it fills"
    if select is not None and message is None:
        yield "sink.message", "is missing: select fills its fields"
    if definition.joins and select is None:
        yield "select", "is missing: without it nothing of the joined tables is written"
    if definition.explode is not None and select is None:
        yield "select", "is missing: without it each element would give the same record"
    policy = definition.sink.config.get("cleanup.policy")
    if shape != "route" and policy is not None and "compact" not in policy.split(","):
        yield "sink.config", f"cleanup.policy is {policy}: rows that do not change would be lost; leave it out"
    yield from _of_the_store(definition)


def _of_the_store(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    owner = definition.store.readers if definition.store is not None else None
    if isinstance(owner, sections.OwnerSection) and owner.group and owner.field != _field_of_the_group(definition):
        group = f"{definition.group_by}, which is not {owner.field} in the rows that are written"
        yield "store.readers.group", f"is true, but keys are grouped by {group}: a consumer would read others' rows"


def _field_of_the_group(definition: PipelineFile) -> str | None:
    """Returns the field of the rows that are written which holds the group; None where there is no such field."""
    if isinstance(definition.group_by, list):
        return None
    path = definition.group_by.removeprefix(f"{definition.source.topic}.")
    if definition.select is not None:
        return next((field for field, sql in definition.select.items() if sql == path), None)
    return path.rpartition(".")[2] if definition.keep.aggregate is not None else path


def _of_other_formats(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    source = definition.source
    if source.epoch is not None and source.format != "debezium-json":
        yield "source.epoch", f"has no meaning in format {source.format}; it goes with: debezium-json"
    if source.values is not None and source.row_values is None:
        yield "source.values", f"has no meaning in format {source.format}; it goes with: table, events"
    for key in () if source.events else ("time", "deduplicate"):
        if getattr(source, key) is not None:
            yield f"source.{key}", f"has no meaning in format {source.format}; it goes with: events"
    if source.events:
        yield from _of_events(definition)
    if source.table is not None:
        yield from _of_a_table(definition)


def _of_a_table(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    source, keep = definition.source, definition.keep
    if keep.shape == "aggregate" and source.key is not None:
        yield "source.key", "has no meaning for an aggregate of a table, whose rows are told apart by the records' keys"
    if definition.insert_only:
        yield "insert_only", "has no meaning for a table, whose rows change"
    if keep.route is not None and "operations" in keep.route.model_fields_set:
        yield "keep.route.operations", "has no meaning for a table, of which every row that is not null is passed on"
    if keep.route is not None and keep.route.totals:
        yield "keep.route.totals", "has no meaning for a table, whose records do not tell which rows are new"


def _of_events(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    source, keep = definition.source, definition.keep
    if source.values == "state-record":
        yield "source.values", "must be protobuf or json: state-records are rows, which are read by format: table"
    if source.key is not None:
        problem = "has no meaning for events, each of which is a row of its own; source.deduplicate drops repeated ones"
        yield "source.key", problem
    if definition.insert_only:
        yield "insert_only", "has no meaning for events, which never change: min and max go without it"
    if "forget_deleted" in definition.model_fields_set:
        yield "forget_deleted", "has no meaning for events, which are never deleted"
    if keep.route is not None and "operations" in keep.route.model_fields_set:
        yield "keep.route.operations", "has no meaning for events, each of which is passed on"
    if source.time is not None and source.deduplicate is None and keep.shape not in ("latest", "members"):
        problem = f"has no meaning with keep: {keep.shape} without source.deduplicate, which needs no newest event"
        yield "source.time", problem


def _of_a_table_join(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    source, joined = definition.source, definition.table_join
    if joined is None:
        return
    if source.format != "table":
        yield "source.format", f"must be table with table_join, which joins two tables: it is {source.format}"
    if joined.topic == source.topic:
        yield "table_join.topic", f"is {joined.topic}, as source.topic is: a table is not joined with itself"
    if source.key is not None:
        yield "source.key", "has no meaning with table_join, which tells rows apart by the records' keys"
    if source.starting_offsets != EARLIEST:
        yield "source.starting_offsets", "must be earliest with table_join: rows from before would be joined with none"
    if definition.joins:
        yield "joins", "cannot stand beside table_join: look rows up in a pipeline that reads what this one writes"
    if definition.select is None:
        yield "select", "is missing: without it nothing of the joined table is written"
    if definition.trigger.mode != "micro-batch":
        problem = "must be micro-batch with table_join: after a crash a batch must give the rows that it gave before"
        yield "trigger.mode", problem


def _of_a_late_start(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    source, keep = definition.source, definition.keep
    keeps_rows = keep.route is None or keep.route.totals is not None
    if source.partial and (source.starting_offsets == EARLIEST or not keeps_rows):
        beside = "starting_offsets: earliest" if keeps_rows else "keep: route without totals, which keeps no rows"
        yield "source.partial", f"has no meaning with {beside}"
    if source.starting_offsets != EARLIEST and keeps_rows and not source.partial:
        what = "running totals" if keep.shape == "route" else f"keep: {keep.shape}"
        problem = f"leaves out of {what} all rows that changed last before: say source.partial: true if that is meant"
        yield "source.starting_offsets", problem


def _no_partition_by(definition: PipelineFile) -> str | None:
    """Returns why partitions cannot be chosen, None if they can."""
    if definition.keep.route is None:
        why = "readers find a key's partition by its group"
        return f"cannot be chosen for a keyed topic: {why}; it goes with keep: route"
    if definition.keep.route.totals:
        return "has no meaning with keep.route.totals, whose records are made per group: they stand under its key"
    return None


def _without_totals(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    for key, section in (("key", definition.source), ("forget_deleted", definition), ("state", definition)):
        if key in section.model_fields_set and not (key == "state" and definition.source.deduplicate):
            name = "source.key" if key == "key" else key
            yield name, "has no meaning with keep: route without totals, which remembers no rows"


def _beside_totals(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    if definition.source.key is None and definition.source.format == "protobuf":
        yield "source.key", "is missing: a running total needs the row's primary key, to count each row once"
    if definition.trigger.mode != "micro-batch":
        problem = "must be micro-batch: in real-time mode a crash could change the order in which totals add up"
        yield "trigger.mode", problem
    if definition.explode is not None:
        yield "explode", "has no meaning with keep.route.totals: they are of rows"
    if definition.select is None:
        yield "select", "is missing: it and keep.route.totals fill the fields of sink.message"


def _of_other_shapes(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    shape = definition.keep.shape
    if shape == "aggregate" and definition.joins:
        yield (
            "joins",
            "are not exact with keep: aggregate, for after a crash a row may be joined with a newer row of the table: "
            "join with keep: latest, and aggregate its topic by another pipeline with source.format: table",
        )
    for key, shapes in _SHAPES_WITH.items():
        if key in definition.model_fields_set and shape not in shapes:
            yield key, f"has no meaning with keep: {shape}; it goes with: {', '.join(shapes)}"


def schema_text() -> str:
    """Returns the schema as domains/pipeline.schema.json holds it."""
    return schema_of(PipelineFile, "A pipeline of the stream-processor")
