"""Defines the sections of a pipeline's file that name its sources."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from statecast_domains.sections import Name, Section, Topic
from statecast_domains.values import EARLIEST, Duration, Paths, StartingOffsets

Format = Literal["protobuf", "debezium-json", "table", "events"]
RowValues = Literal["state-record", "protobuf", "json"]


class DeduplicateSection(Section):
    """Drops copies of an event that was sent more than once: the first counts."""

    by: Paths = Field(
        description="The path of the event's own id, or a list of paths. Without it an event is a dead letter."
    )
    within: Duration = Field(
        gt=timedelta(0),
        description="Longest time between copies of an event, by their times. Each id is remembered for twice as long, "
        "by the clock.",
    )


class SourceSection(Section):
    """The topic that the pipeline reads."""

    topic: Topic
    message: str = Field(
        description="The full name of the change message, with operation, source, before and after. For a table or "
        "events: the name of the row's message."
    )
    format: Format = Field(
        "protobuf",
        description="Encoding of the topic's values. In a table, a compacted topic, a value is the row under the "
        "record's key, and null deletes it. Among events each value is a row, whatever its key.",
    )
    values: RowValues | None = Field(
        None,
        description="For a table: form of its values. Default: state-record, as in a keyed topic of another pipeline; "
        "in other forms the offset orders values. For events: protobuf, the default, or json.",
    )
    key: Paths | None = Field(
        None,
        description="The row's primary key: a path, or a list of paths. Default: the columns of the connector's record "
        "key; for protobuf, group_by with latest, keep.members.key with members; for a table, the record's key.",
    )
    time: str | None = Field(
        None,
        description="For events: the path of the time that decides which event of a key is the newest, and that "
        "`deduplicate` uses. Default: the record's time.",
    )
    deduplicate: DeduplicateSection | None = Field(
        None, description="For events: which ones are duplicates to drop. Default: none, so each record counts."
    )
    epoch: int | None = Field(
        None,
        ge=1,
        description="For debezium-json: the database's incarnation. Raise it after a restore. Default: 1.",
    )
    starting_offsets: StartingOffsets = Field(
        EARLIEST,
        description="Start of a pipeline without a checkpoint: the topic's beginning (`earliest`), its end (`latest`), "
        "or the first records since a time, `2026-10-25T06:00:00Z`.",
    )
    partial: bool = Field(
        False,
        description="With starting_offsets, for pipelines that keep rows: accepts that rows without a later change are "
        "missing.",
    )

    @property
    def table(self) -> RowValues | None:
        """The kind of a table's values; None for a topic of changes or events."""
        return (self.values or "state-record") if self.format == "table" else None

    @property
    def events(self) -> bool:
        """Whether each record is a row of its own, which never changes."""
        return self.format == "events"

    @property
    def row_values(self) -> RowValues | None:
        """The kind of the values where each is a row, of a table or of events; None for a topic of changes."""
        return (self.values or "protobuf") if self.events else self.table


class JoinSection(Section):
    """A keyed topic to look up as a table."""

    topic: Topic
    message: str = Field(description="The full name of the message in the keyed topic.")
    key: str = Field(description="The path, in the source's row, of the value that is the table's key as text.")
    as_: Name = Field(alias="as", description="The name of the joined row, for `select`.")


JoinType = Literal["inner", "left", "outer"]


class TableJoinSection(Section):
    """A second table, joined with the source by the records' keys. A change on either side writes the row again."""

    topic: Topic
    message: str = Field(description="The full name of the message of the table's rows.")
    values: RowValues | None = Field(None, description="Form of the table's values, like source.values.")
    key: Paths | None = Field(
        None, description="The path in the table's rows, or list of paths, of the record's key. Default: group_by."
    )
    as_: Name = Field(alias="as", description="The name of the table's row, for `select`.")
    type: JoinType = Field(
        "inner",
        description="Keys with a joined row: those in both tables (`inner`), the source (`left`), or either (`outer`).",
    )

    @property
    def source(self) -> SourceSection:
        """The table as the source of a pipeline that reads it alone."""
        content = {"topic": self.topic, "message": self.message, "format": "table", "values": self.values}
        return SourceSection.model_validate(content)
