"""Defines the sections of a pipeline's file that name its sources."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from statecast_domains.sections import Name, Section, Topic
from statecast_domains.values import EARLIEST, Duration, Paths, StartingOffsets

Format = Literal["protobuf", "debezium-json", "table", "events"]
RowValues = Literal["state-record", "protobuf", "json"]


class DeduplicateSection(Section):
    """Which events are one that was sent more than once: the first counts, and the others are dropped."""

    by: Paths = Field(
        description="The path of the event's own id, or a list of paths. Without it an event is a dead letter."
    )
    within: Duration = Field(
        gt=timedelta(0),
        description="How far apart the times of the same event may be. Each id is remembered for twice as long by the "
        "clock.",
    )


class SourceSection(Section):
    """Where changes come from."""

    topic: Topic
    message: str = Field(
        description="The full name of the change message, with operation, source, before and after; of a table or of "
        "events that of their rows."
    )
    format: Format = Field(
        "protobuf",
        description="How the topic's values are encoded. Of a table, a compacted topic, a value is the row under the "
        "record's key, and null deletes it. Of events each value is a row of its own, whatever its key.",
    )
    values: RowValues | None = Field(
        None,
        description="Of a table: what its values are. Default: state-record, as on a keyed topic of another pipeline. "
        "Of the others the offset is the order. Of events: protobuf, the default, or json.",
    )
    key: Paths | None = Field(
        None,
        description="The row's primary key: a path, or a list of paths. Default: the columns of the connector's record "
        "key; of protobuf group_by for latest, keep.members.key for members; of a table the record's key.",
    )
    time: str | None = Field(
        None,
        description="Of events: the path of the time by which one of a key is the newest, and of `deduplicate`. "
        "Default: the record's time.",
    )
    deduplicate: DeduplicateSection | None = Field(
        None, description="Of events: which of them are dropped as duplicates. Default: none, each record counts."
    )
    epoch: int | None = Field(
        None,
        ge=1,
        description="Of debezium-json: the database's incarnation, raised when it was restored. Default: 1.",
    )
    starting_offsets: StartingOffsets = Field(
        EARLIEST,
        description="Where a pipeline without a checkpoint begins: at the topic's beginning, at its end (`latest`), or "
        "at the first records of a moment on, `2026-10-25T06:00:00Z`.",
    )
    partial: bool = Field(
        False,
        description="Beside starting_offsets, of what keeps rows: that rows which changed last before them are meant "
        "to be missing.",
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
    """A keyed topic that is looked up as a table."""

    topic: Topic
    message: str = Field(description="The full name of the message that the keyed topic holds.")
    key: str = Field(description="The path in the row of the value whose text is the table's key.")
    as_: Name = Field(alias="as", description="The name of the joined row, for `select`.")


JoinType = Literal["inner", "left", "outer"]


class TableJoinSection(Section):
    """Another table, joined with the source by the records' keys: a change of either side writes the row anew."""

    topic: Topic
    message: str = Field(description="The full name of the message of its rows.")
    values: RowValues | None = Field(None, description="What its values are, as source.values says of the source's.")
    key: Paths | None = Field(
        None, description="The path in its rows, or list of paths, that is the record's key. Default: group_by."
    )
    as_: Name = Field(alias="as", description="The name of its row, for `select`.")
    type: JoinType = Field(
        "inner",
        description="Which keys have a joined row: those in both tables, in the source (`left`), in either (`outer`).",
    )

    @property
    def source(self) -> SourceSection:
        """The table as the source of a pipeline that reads it alone."""
        content = {"topic": self.topic, "message": self.message, "format": "table", "values": self.values}
        return SourceSection.model_validate(content)
