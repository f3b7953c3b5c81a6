"""The sections of a pipeline's file."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from statecast_domains.values import CheckpointInterval, Duration, Paths, Size, Sql, human
from statecast_service.settings import suggest
from statecast_service.topic_names import TopicName

Shape = Literal["latest", "members", "aggregate", "route"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
RouteOperation = Literal["create", "update", "snapshot"]
ReaderName = Literal["staff", "everyone"]
READERS: tuple[ReaderName, ...] = get_args(ReaderName)

Topic = Annotated[TopicName, Field(description="A Kafka topic.")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", description="A name for SQL expressions.")]
Partitions = Annotated[int, Field(ge=1, le=10_000)]
PARTITIONS_ARE = "Partitions of a topic that is created: over how many instances reading can be spread."
TopicConfig = dict[str, str]
CONFIG_IS = 'More settings of the topic, by Kafka\'s names, as texts: `{max.message.bytes: "4194304"}`.'


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
    keep: Duration | None = Field(
        None,
        description="How long after its end a window is kept, by the highest commit time of the source: at least its "
        "size and its lateness. Then it is deleted from the topic and from the state. Default: for good.",
    )

    @model_validator(mode="after")
    def _hops_divide_the_size(self) -> "WindowSection":
        if self.hop is not None and (self.size % self.hop or self.size // self.hop > MAX_WINDOWS):
            raise ValueError(f"hop must divide size, into at most {MAX_WINDOWS} parts")
        return self

    @model_validator(mode="after")
    def _windows_are_kept_while_they_change(self) -> "WindowSection":
        least = max(self.size, self.lateness)
        if self.keep is not None and self.keep < least:
            why = "a window takes changes" if least == self.lateness else "a window lasts"
            raise ValueError(f"keep is {human(self.keep)}, and {why} for {human(least)}: keep it at least as long")
        return self


class MembersSection(Section):
    """The key and the order of a group's members."""

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
    """The form of a group: `latest`, or one of these; or `route`, which keeps nothing and passes rows on."""

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
        """The form in which a group is kept."""
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


_OURS = "records would be lost or change their order; it is always all, idempotent and in order"
_OWN_PRODUCER: Mapping[str, str] = {
    "acks": _OURS,
    "retries": _OURS,
    "enable_idempotence": _OURS,
    "max_in_flight_requests_per_connection": _OURS,
    "delivery_timeout_ms": "the query would end while the broker is away for a moment",
    "transactional_id": "transactions are not used: readers tell what comes twice by its sequence",
    "partitioner_class": "it is sink.partition_by that chooses partitions",
    "bootstrap_servers": "it is STREAM_PROCESSOR_KAFKA_BOOTSTRAP that names the broker",
    "max_request_size": "the topic's max.message.bytes says how large records may be",
}
"""Why producer settings of Kafka's cannot be chosen."""
_PRODUCER_NAMES = {"compression_type": "compression", "linger_ms": "linger"}


class ProducerSection(Section):
    """How Kafka's producer gathers records; no setting here changes the records' content."""

    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "lz4", description="Of the batches of records; the topic's compression.type may say otherwise."
    )
    linger: Duration = Field(
        "3ms",
        validate_default=True,
        le=timedelta(seconds=10),
        description="How long a record waits for others to be sent with: a lower rate of requests, and a longer delay.",
    )
    batch_size: Size = Field(
        "16KiB",
        validate_default=True,
        ge=1024,
        le=8 * 1024**2,
        description="At how many bytes for a partition they are sent without waiting.",
    )

    @model_validator(mode="before")
    @classmethod
    def _only_what_may_be_chosen(cls, content: object) -> object:
        for key in content if isinstance(content, dict) else ():
            name = str(key).replace(".", "_").replace("-", "_")
            problem = f"cannot be chosen: {_OWN_PRODUCER[name]}" if name in _OWN_PRODUCER else None
            if name != key or name in _PRODUCER_NAMES:
                own = _PRODUCER_NAMES.get(name, name)
                problem = problem or (f"unknown key; it is called {own} here" if own in cls.model_fields else None)
            if problem:
                raise PydanticCustomError("unknown_key", "{problem}", {"key": str(key), "problem": problem})
        return content


class SinkSection(Section):
    """Where records go."""

    topic: Topic
    message: str | None = Field(None, description="The full name of the message that is written. Default: the row's.")
    partitions: Partitions = Field(4, description=f"{PARTITIONS_ARE} Keys would change theirs, so they never change.")
    config: TopicConfig = Field({}, description=CONFIG_IS)
    producer: ProducerSection = Field({}, validate_default=True)
    partition_by: Sql | None = Field(
        None,
        description="Of a route: a SQL expression that chooses the partition, an integer as its remainder, a text as "
        "Kafka's producer would by a key. Default, and where it is null: the record's key.",
    )


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
    age: Duration | None = Field(None, gt=timedelta(0), description="Versions that were the newest within this time.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "HistorySection":
        if (self.versions is None) == (self.age is None):
            raise ValueError("takes either versions or age: name one of them")
        return self


class PrivateSection(Section):
    """A field of the rows that not all of their readers see."""

    path: str = Field(
        min_length=1,
        description="The field; names within each other are joined by dots. A row of JSON without it is for staff.",
    )
    owner: str = Field(
        min_length=1,
        description="The text field that holds the id of who sees it: of each element of a list, or else of the row.",
    )


class StoreSection(Section):
    """The store of the query service that holds the topic, under the pipeline's name, and who may read it."""

    description: str | None = Field(
        None, min_length=1, description="One line for people, shown where stores are listed."
    )
    interval: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="How often at most clients that name no interval are told of changes. Default: the edge's setting.",
    )
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


class StateSection(Section):
    """How Spark keeps a pipeline's memory of rows and groups."""

    memory: Size = Field(
        ge=1024**2,
        description="Memory of its own, over all its partitions, for what of the state is read and written; its files "
        "are on the executors' disks.",
    )


MAX_BATCH_RECORDS = 100_000
"""Most records of one micro-batch, so that a backlog is worked off in steps; real-time mode has no such bound."""


class TriggerSection(Section):
    """How Spark runs the query."""

    mode: Literal["realtime", "micro-batch"] = Field(
        "realtime", description="Records flow through tasks that stay, or are taken up in batches."
    )
    checkpoint: CheckpointInterval = Field(
        "60s",
        validate_default=True,
        description="Of real-time mode: the time between checkpoints; 5s at least. The first one of a run comes "
        "sooner, by the pipeline's name, so that pipelines do not wait for each other.",
    )
    interval: Duration = Field(
        "1s", validate_default=True, description="Of micro-batch mode: the time between the starts of two batches."
    )
    max_records: int = Field(
        MAX_BATCH_RECORDS,
        ge=1,
        description="Of micro-batch mode: how many records of the source a batch takes at most; with table_join so "
        "many of each of the two tables.",
    )

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TriggerSection":
        for foreign in ("interval", "max_records") if self.mode == "realtime" else ("checkpoint",):
            if foreign in self.model_fields_set:
                raise ValueError(f"{foreign} has no meaning in mode {self.mode}")
        return self


class DeadLettersSection(Section):
    """How many records may be set aside before the pipeline stops."""

    limit: int = Field(1000, ge=0, description="Of changes that it cannot use; beyond that it stops.")
