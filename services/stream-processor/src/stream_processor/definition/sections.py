"""The sections of a pipeline's file, and what the values of their keys look like: names, SQL, durations as `500ms`."""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from statecast_service.settings import suggest

Shape = Literal["latest", "members", "aggregate", "route"]
RouteOperation = Literal["create", "update", "snapshot"]


def one_line(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="A Kafka topic.")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", description="A name for SQL expressions.")]
Sql = Annotated[str, Field(min_length=1), AfterValidator(one_line)]

MIN_CHECKPOINT = timedelta(seconds=5)
"""Spark refuses less: a checkpoint would cost more than the records between two of them."""

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")


def parse_duration(text: object) -> timedelta:
    """The duration that `text` names. Raises ValueError for any other form."""
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration like 500ms, 60s or 2m")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def spark_text(duration: timedelta) -> str:
    """The duration as Spark's triggers take it."""
    return f"{round(duration.total_seconds() * 1000)} milliseconds"


def human(duration: timedelta) -> str:
    """The duration as people write it, in the largest unit that it is a multiple of."""
    if not duration:
        return "0s"
    milliseconds = round(duration.total_seconds() * 1000)
    lengths = [(name, round(seconds * 1000)) for name, seconds in _UNITS.items()]
    name, length = next(each for each in reversed(lengths) if milliseconds % each[1] == 0)
    return f"{milliseconds // length}{name}"


def _long_enough(interval: timedelta) -> timedelta:
    if interval < MIN_CHECKPOINT:
        raise ValueError(f"real-time mode needs {MIN_CHECKPOINT.seconds}s between checkpoints at least")
    return interval


_DURATION_SCHEMA = {
    "type": "string",
    "pattern": rf"^{_DURATION.pattern}$",
    "examples": ["500ms", "60s", "2m", "1h", "7d"],
}
Duration = Annotated[timedelta, BeforeValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA, mode="validation")]
CheckpointInterval = Annotated[Duration, AfterValidator(_long_enough)]


def duration_field(default: str, description: str) -> Any:
    """A key with a default that the JSON Schema shows as people write it."""
    return Field(default=parse_duration(default), description=description, json_schema_extra={"default": default})


class Section(BaseModel):
    """Keys and values that can be written in a file; any other key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceSection(Section):
    """Where changes come from."""

    topic: TopicName
    message: str = Field(description="The full name of the change message, with operation, source, before and after.")
    format: Literal["protobuf", "debezium-json"] = Field(
        default="protobuf", description="How the topic's values are encoded."
    )
    key: str | None = Field(
        default=None,
        description="The path of the row's primary key. Default: group_by for latest, keep.members.key for members.",
    )
    epoch: int | None = Field(
        default=None,
        ge=1,
        description="Of debezium-json: the database's incarnation, raised when it was restored. Default: 1.",
    )


class JoinSection(Section):
    """A keyed topic that is looked up as a table."""

    topic: TopicName
    message: str = Field(description="The full name of the message that the keyed topic holds.")
    key: str = Field(description="The path in the row of the value whose text is the table's key.")
    as_: Name = Field(alias="as", description="The name of the joined row, for `select`.")


class WindowSection(Section):
    """Splits each group of an aggregate into windows of the same length, by a time of the row."""

    time: str = Field(description="The path of the time that decides the window.")
    size: Duration = Field(description="How long a window is. Windows begin at multiples of it since 1970, in UTC.")
    lateness: Duration = duration_field("0s", "How long after its end a window takes changes, by their commit time.")

    @model_validator(mode="after")
    def _has_a_length(self) -> "WindowSection":
        if not self.size:
            raise ValueError("size must be more than nothing")
        return self


class MembersSection(Section):
    """What makes a row a member of its group."""

    key: str = Field(description="The path of the member's key within the group.")
    sort: str = Field(description="The path of the value by which a group's members are ordered.")


class RouteSection(Section):
    """Which changes are passed on."""

    operations: list[RouteOperation] = Field(
        default=["create", "update", "snapshot"], min_length=1, description="Those whose row is written."
    )


class KeepSection(Section):
    """What a group keeps: `latest`, or one of these; or `route`, which keeps nothing and passes rows on."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    members: MembersSection | None = Field(default=None, description="A row per member.")
    aggregate: dict[str, Sql] | None = Field(
        default=None,
        min_length=1,
        description="Per field of the sink's message: count(*), or sum, avg, min or max of a SQL expression.",
    )
    route: RouteSection | None = Field(default=None, description="Rows are passed on to a plain topic.")

    @property
    def shape(self) -> Shape:
        """The form of what a group keeps."""
        if self.members is not None:
            return "members"
        if self.aggregate is not None:
            return "aggregate"
        return "latest" if self.route is None else "route"


def _keep(value: object) -> object:
    shapes: tuple[Shape, ...] = get_args(Shape)
    if isinstance(value, dict) and len(value) > 1:
        raise ValueError(f"a pipeline keeps one of: {', '.join(shapes)}")
    shape = next(iter(value), "") if isinstance(value, dict) else value
    if shape not in shapes:
        raise ValueError(f"{shape!r} is not supported; {suggest(str(shape), shapes)}")
    if value in ("members", "aggregate"):
        example = "{members: {key: ..., sort: ...}}" if value == "members" else "{aggregate: {FIELD: count(*)}}"
        raise ValueError(f"{value} needs more: {example}")
    if value == "route":
        return {"route": {}}
    return {} if shape == "latest" else value


Keep = Annotated[KeepSection, BeforeValidator(_keep, json_schema_input_type=Literal["latest", "route"] | KeepSection)]


class SinkSection(Section):
    """Where records go."""

    topic: TopicName
    message: str | None = Field(
        default=None, description="The full name of the message that is written. Default: the row's."
    )


class TriggerSection(Section):
    """How Spark runs the query."""

    mode: Literal["realtime", "micro-batch"] = Field(
        default="realtime", description="Records flow through tasks that stay, or are taken up in batches."
    )
    checkpoint: CheckpointInterval = duration_field(
        "60s", "Of real-time mode: the time between checkpoints; 5s at least."
    )
    interval: Duration = duration_field("1s", "Of micro-batch mode: the time between the starts of two batches.")

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TriggerSection":
        foreign = "interval" if self.mode == "realtime" else "checkpoint"
        if foreign in self.model_fields_set:
            raise ValueError(f"{foreign} has no meaning in mode {self.mode}")
        return self


class DeadLettersSection(Section):
    """How many records may be set aside before the pipeline stops."""

    limit: int = Field(default=1000, ge=0, description="Of the source topic; the lowest of its pipelines counts.")
