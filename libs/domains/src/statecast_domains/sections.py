"""The sections of a pipeline's file."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
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
PARTITIONS_ARE = "Partitions of a new topic: the highest number of instances that can share its reads."


def _whole_numbers(config: dict[str, str]) -> dict[str, str]:
    for name, value in config.items():
        if name.endswith((".bytes", ".ms")) and not value.removeprefix("-").isdecimal():
            raise ValueError(f'{name} is {value}, and Kafka takes a whole number, such as "4194304"')
    return config


TopicConfig = Annotated[dict[str, str], AfterValidator(_whole_numbers)]
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
    size: Duration = Field(gt=timedelta(0), description="Length of a window.")
    hop: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="Time from the start of one window to that of the next; a row is in size / hop windows. Default: "
        "the size, so windows do not overlap. Windows begin at multiples of it since 1970, in UTC.",
    )
    lateness: Duration = Field(
        "0s",
        validate_default=True,
        description="Time after its end for which a window accepts changes, by their commit time.",
    )
    keep: Duration | None = Field(
        None,
        description="Time after its end for which a window is kept, by the highest commit time of the source; at least "
        "the longer of size and lateness. Then topic and state drop it. Default: for good.",
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
    sort: str = Field(description="The path of the value that orders the members of a group.")


class RouteSection(Section):
    """Chooses the changes that a route passes on."""

    operations: list[RouteOperation] = Field(
        ["create", "update", "snapshot"], min_length=1, description="Operations of changes to write."
    )
    totals: dict[str, Sql] | None = Field(
        None,
        min_length=1,
        description="For each field of the sink's message: count(*), or sum or avg of a SQL expression, over the "
        "group's rows so far.",
    )


class KeepSection(Section):
    """The form of a group: `latest`, `members` or `aggregate`; or `route`, which keeps nothing and passes rows on."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    members: MembersSection | None = Field(None, description="Keeps a row for each member.")
    aggregate: dict[str, Sql] | None = Field(
        None,
        min_length=1,
        description="For each field of the sink's message: count(*), or sum, avg, min, max or collect_set of SQL.",
    )
    route: RouteSection | None = Field(None, description="Passes rows on to a plain topic.")

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
    """How Kafka's producer batches records. No setting here changes their content."""

    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "lz4", description="Compression of record batches, unless the topic's compression.type sets another."
    )
    linger: Duration = Field(
        "3ms",
        validate_default=True,
        le=timedelta(seconds=10),
        description="Time for which a record waits for others in its batch: fewer requests, and a longer delay.",
    )
    batch_size: Size = Field(
        "16KiB",
        validate_default=True,
        ge=1024,
        le=8 * 1024**2,
        description="Bytes for a partition at which its batch is sent without waiting.",
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
    """The topic that the pipeline writes."""

    topic: Topic
    message: str | None = Field(None, description="The full name of the message to write. Default: the row's.")
    partitions: Partitions = Field(4, description=f"{PARTITIONS_ARE} The number is final: keys would move.")
    config: TopicConfig = Field({}, description=CONFIG_IS)
    producer: ProducerSection = Field({}, validate_default=True)
    partition_by: Sql | None = Field(
        None,
        description="For a route: a SQL expression that chooses the partition, an integer by its remainder, a text as "
        "Kafka's producer does with a key. Default, and for null: the record's key.",
    )


class OwnerSection(Section):
    """Lets each consumer read their own rows."""

    field: str = Field(min_length=1, description="The text field of the row that holds the consumer's id.")
    group: bool = Field(False, description="States that the group of every key is that id, too.")


def _readers(value: object) -> object:
    if isinstance(value, (dict, OwnerSection)) or value in READERS:
        return value
    raise ValueError(f"{value!r} is not supported; {suggest(str(value), READERS)}, or write {{field: FIELD}}")


Readers = Annotated[ReaderName | OwnerSection, BeforeValidator(_readers)]


class HistorySection(Section):
    """Older versions of a key that a store keeps, by number or by age."""

    versions: int | None = Field(None, ge=1, le=10_000, description="Number of versions to keep beside the newest.")
    age: Duration | None = Field(
        None, gt=timedelta(0), description="Keeps versions that were the newest within this time."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> "HistorySection":
        if (self.versions is None) == (self.age is None):
            raise ValueError("takes either versions or age: name one of them")
        return self


class PrivateSection(Section):
    """A field of the rows that only some of their readers see."""

    path: str = Field(
        min_length=1,
        description="The field; dots join the names of nested fields. Only staff see a row of JSON without it.",
    )
    owner: str = Field(
        min_length=1,
        description="The text field with the id of the consumer who sees it: of each list element, or else of the row.",
    )


class StoreSection(Section):
    """The store of the query service that holds the topic, under the pipeline's name, and its readers."""

    description: str | None = Field(None, min_length=1, description="One line for people, shown in lists of stores.")
    interval: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="Shortest time between two frames, if the client sets none. Default: the edge's setting.",
    )
    readers: Readers = Field(
        "staff", description="Readers of rows: `staff`, `everyone`, or staff and the consumer that a field names."
    )
    engine: Literal["rocksdb", "memory"] = Field(
        "rocksdb", description="Keeps rows on disk, or in memory, which is restored from the topic at each start."
    )
    history: HistorySection | None = None
    replicas: int | None = Field(
        None, ge=1, le=16, description="Instances that hold each partition. Default: the query service's setting."
    )
    private: list[PrivateSection] = Field(
        default=[], description="Fields that readers see only in their own rows or elements; staff see all."
    )


class StateSection(Section):
    """How Spark stores the pipeline's state of rows and groups."""

    memory: Size = Field(
        ge=1024**2,
        description="The pipeline's own memory, over all partitions, for reads and writes of the state. Its files "
        "are on the executors' disks.",
    )


MAX_BATCH_RECORDS = 100_000
"""Most records of one micro-batch, so that a backlog is worked off in steps; real-time mode has no such bound."""


class TriggerSection(Section):
    """How Spark runs the query."""

    mode: Literal["realtime", "micro-batch"] = Field(
        "realtime", description="Passes records through long-running tasks, or processes them in batches."
    )
    checkpoint: CheckpointInterval = Field(
        "60s",
        validate_default=True,
        description="For real-time mode: time between checkpoints, at least 5s. The first one of a run comes "
        "sooner, at a time derived from the pipeline's name, so that pipelines do not wait for each other.",
    )
    interval: Duration = Field(
        "1s", validate_default=True, description="For micro-batch mode: time between the starts of two batches."
    )
    max_records: int = Field(
        MAX_BATCH_RECORDS,
        ge=1,
        description="For micro-batch mode: most records of the source in a batch; with table_join, of each of the two "
        "tables.",
    )

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TriggerSection":
        for foreign in ("interval", "max_records") if self.mode == "realtime" else ("checkpoint",):
            if foreign in self.model_fields_set:
                raise ValueError(f"{foreign} has no meaning in mode {self.mode}")
        return self


class DeadLettersSection(Section):
    """Limits the dead letters of the pipeline."""

    limit: int = Field(1000, ge=0, description="Most unusable changes; the pipeline stops at the next one.")
