"""The sections of a pipeline's file, and what the values of their keys look like: names, SQL, durations as `500ms`."""

import re
from datetime import timedelta
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from statecast_service.settings import suggest
from statecast_service.topic_names import TopicName

Shape = Literal["latest", "members", "aggregate", "route"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
RouteOperation = Literal["create", "update", "snapshot"]
ReaderName = Literal["staff", "everyone"]
READERS: tuple[ReaderName, ...] = get_args(ReaderName)


def one_line(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


Topic = Annotated[TopicName, Field(description="A Kafka topic.")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", description="A name for SQL expressions.")]
Sql = Annotated[str, Field(min_length=1), AfterValidator(one_line)]
Partitions = Annotated[int, Field(ge=1, le=10_000)]
PARTITIONS_ARE = "Partitions of a topic that is created: over how many instances reading can be spread."
TopicConfig = dict[str, str]
CONFIG_IS = 'More settings of the topic, by Kafka\'s names, as texts: `{max.message.bytes: "4194304"}`.'


def _paths(value: object) -> object:
    """One path, or a list of different ones. Raises ValueError for any other form."""
    paths = value if isinstance(value, list) else [value]
    if not paths or not all(isinstance(each, str) for each in paths):
        raise ValueError("must be a path or a list of paths")
    if len(set(paths)) < len(paths):
        raise ValueError("names a path twice")
    return value


Paths = Annotated[str | Annotated[list[str], Field(min_length=1)], BeforeValidator(_paths)]

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")


def parse_duration(text: object) -> timedelta:
    """The duration that `text` names. Raises ValueError for any other form."""
    if isinstance(text, timedelta):
        return text
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration like 500ms, 60s or 2m")
    return timedelta(milliseconds=int(match[1]) * _UNITS[match[2]])


def spark_text(duration: timedelta) -> str:
    """The duration as Spark's triggers take it."""
    return f"{duration // timedelta(milliseconds=1)} milliseconds"


def human(duration: timedelta) -> str:
    """The duration as people write it, in the largest unit that it is a multiple of."""
    total = duration // timedelta(milliseconds=1)
    unit = max((name for name in _UNITS if total % _UNITS[name] == 0), key=_UNITS.__getitem__) if total else "s"
    return f"{total // _UNITS[unit]}{unit}"


_READ = BeforeValidator(parse_duration)
_EXAMPLES = ["500ms", "60s", "2m", "1h", "7d"]
_SHOWN = WithJsonSchema({"type": "string", "pattern": rf"^{_DURATION.pattern}$", "examples": _EXAMPLES}, "validation")
Duration = Annotated[timedelta, _READ, _SHOWN]
CheckpointInterval = Annotated[timedelta, Field(ge=timedelta(seconds=5)), _READ, _SHOWN]
"""Spark refuses less: a checkpoint would cost more than the records between two of them."""


class Section(BaseModel):
    """Keys and values that can be written in a file; any other key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, content: object) -> object:
        valid = [field.alias or name for name, field in cls.model_fields.items()]
        for key in content if isinstance(content, dict) else ():
            if key not in valid:
                problem = f"unknown key; {suggest(str(key), valid)}"
                raise PydanticCustomError("unknown_key", "{problem}", {"key": str(key), "problem": problem})
        return content


Format = Literal["protobuf", "debezium-json", "table"]
TableValues = Literal["state-record", "protobuf", "json"]


class SourceSection(Section):
    """Where changes come from."""

    topic: Topic
    message: str = Field(
        description="The full name of the change message, with operation, source, before and after; of a table that of "
        "its rows."
    )
    format: Format = Field(
        "protobuf",
        description="How the topic's values are encoded. Of a table, a compacted topic, a value is the row under the "
        "record's key, and null deletes it.",
    )
    values: TableValues | None = Field(
        None,
        description="Of a table: what its values are. Default: state-record, as on a keyed topic of another pipeline. "
        "Of the others the offset is the order.",
    )
    key: Paths | None = Field(
        None,
        description="The row's primary key: a path, or a list of paths. Default: the columns of the connector's record "
        "key; of protobuf group_by for latest, keep.members.key for members; of a table the record's key.",
    )
    epoch: int | None = Field(
        None,
        ge=1,
        description="Of debezium-json: the database's incarnation, raised when it was restored. Default: 1.",
    )

    @property
    def table(self) -> TableValues | None:
        """What the values of a table are; None of a topic of changes."""
        return (self.values or "state-record") if self.format == "table" else None


class JoinSection(Section):
    """A keyed topic that is looked up as a table."""

    topic: Topic
    message: str = Field(description="The full name of the message that the keyed topic holds.")
    key: str = Field(description="The path in the row of the value whose text is the table's key.")
    as_: Name = Field(alias="as", description="The name of the joined row, for `select`.")


MAX_WINDOWS = 100
"""In how many windows a row may stand: each is a record, and an amount in the state."""


class WindowSection(Section):
    """Splits each group of an aggregate into windows of the same length, by a time of the row."""

    time: str = Field(description="The path of the time that decides the window.")
    size: Duration = Field(gt=timedelta(0), description="How long a window is.")
    hop: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="How long after one window the next one begins; a row is in size / hop of them. Default: the size, "
        "so that windows do not overlap. Windows begin at multiples of it since 1970, in UTC.",
    )
    lateness: Duration = Field(
        "0s",
        validate_default=True,
        description="How long after its end a window takes changes, by their commit time.",
    )

    @model_validator(mode="after")
    def _hops_divide_the_size(self) -> "WindowSection":
        if self.hop is not None and (self.size % self.hop or self.size // self.hop > MAX_WINDOWS):
            raise ValueError(f"hop must divide size, into at most {MAX_WINDOWS} parts")
        return self


class MembersSection(Section):
    """What makes a row a member of its group."""

    key: Paths = Field(description="The member's key within the group: a path, or a list of paths.")
    sort: str = Field(description="The path of the value by which a group's members are ordered.")


class RouteSection(Section):
    """Which changes are passed on."""

    operations: list[RouteOperation] = Field(
        ["create", "update", "snapshot"], min_length=1, description="Those whose row is written."
    )
    totals: dict[str, Sql] | None = Field(
        None,
        min_length=1,
        description="Per field of the sink's message: count(*), or sum or avg of a SQL expression, over the rows that "
        "the group has so far.",
    )


class KeepSection(Section):
    """What a group keeps: `latest`, or one of these; or `route`, which keeps nothing and passes rows on."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    members: MembersSection | None = Field(None, description="A row per member.")
    aggregate: dict[str, Sql] | None = Field(
        None,
        min_length=1,
        description="Per field of the sink's message: count(*), or sum, avg, min, max or collect_set of SQL.",
    )
    route: RouteSection | None = Field(None, description="Rows are passed on to a plain topic.")

    @property
    def shape(self) -> Shape:
        """The form of what a group keeps."""
        return next((shape for shape in SHAPES if getattr(self, shape, None) is not None), "latest")


def _keep(value: object) -> object:
    if isinstance(value, dict) and len(value) > 1:
        raise ValueError(f"a pipeline keeps one of: {', '.join(SHAPES)}")
    shape = next(iter(value), "") if isinstance(value, dict) else value
    if shape not in SHAPES:
        raise ValueError(f"{shape!r} is not supported; {suggest(str(shape), SHAPES)}")
    if value in ("members", "aggregate"):
        example = "{members: {key: ..., sort: ...}}" if value == "members" else "{aggregate: {FIELD: count(*)}}"
        raise ValueError(f"{value} needs more: {example}")
    if value == "route":
        return {"route": {}}
    return {} if shape == "latest" else value


Keep = Annotated[KeepSection, BeforeValidator(_keep, json_schema_input_type=Literal["latest", "route"] | KeepSection)]


class SinkSection(Section):
    """Where records go."""

    topic: Topic
    message: str | None = Field(None, description="The full name of the message that is written. Default: the row's.")
    partitions: Partitions = Field(4, description=f"{PARTITIONS_ARE} Keys would change theirs, so they never change.")
    config: TopicConfig = Field({}, description=CONFIG_IS)


class OwnerSection(Section):
    """Rows that a consumer may read."""

    field: str = Field(min_length=1, description="The text field of the row that holds the consumer's id.")
    group: bool = Field(False, description="Whether the group of every key is that id as well.")


def _readers(value: object) -> object:
    if isinstance(value, (dict, OwnerSection)) or value in READERS:
        return value
    raise ValueError(f"{value!r} is not supported; {suggest(str(value), READERS)}, or write {{field: FIELD}}")


Readers = Annotated[ReaderName | OwnerSection, BeforeValidator(_readers)]


class HistorySection(Section):
    """Which older versions of a key a store keeps: one of the two."""

    versions: int | None = Field(None, ge=1, le=10_000, description="So many versions beside the newest.")
    age: Duration | None = Field(None, description="Versions that were the newest within this time.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "HistorySection":
        if (self.versions is None) == (self.age is None):
            raise ValueError("takes either versions or age: name one of them")
        return self


class PrivateSection(Section):
    """A field of the rows that not all of their readers see."""

    path: str = Field(min_length=1, description="The field; names within each other are joined by dots.")
    owner: str = Field(
        min_length=1,
        description="The text field that holds the id of who sees it: of each element of a list, or else of the row.",
    )


class StoreSection(Section):
    """The store of the query service that holds the topic, under the pipeline's name, and who may read it."""

    readers: Readers = Field(
        "staff", description="Who may read rows beside staff: `staff` for nobody, `everyone`, or whom a field names."
    )
    engine: Literal["rocksdb", "memory"] = Field(
        "rocksdb", description="Rows are kept on disk, or in memory, which is read from the topic again at each start."
    )
    history: HistorySection | None = None
    replicas: int | None = Field(
        None, ge=1, le=16, description="How many instances hold each partition. Default: the query service's setting."
    )
    private: list[PrivateSection] = Field(
        default=[], description="Fields that a reader sees only of what is theirs; staff see them all."
    )


class TriggerSection(Section):
    """How Spark runs the query."""

    mode: Literal["realtime", "micro-batch"] = Field(
        "realtime", description="Records flow through tasks that stay, or are taken up in batches."
    )
    checkpoint: CheckpointInterval = Field(
        "60s", validate_default=True, description="Of real-time mode: the time between checkpoints; 5s at least."
    )
    interval: Duration = Field(
        "1s", validate_default=True, description="Of micro-batch mode: the time between the starts of two batches."
    )

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TriggerSection":
        foreign = "interval" if self.mode == "realtime" else "checkpoint"
        if foreign in self.model_fields_set:
            raise ValueError(f"{foreign} has no meaning in mode {self.mode}")
        return self


class DeadLettersSection(Section):
    """How many records may be set aside before the pipeline stops."""

    limit: int = Field(1000, ge=0, description="Of changes that it cannot use; beyond that it stops.")
