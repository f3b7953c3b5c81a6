"""What the stores file says about one store."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

JSON = "json"
BYTES = "bytes"

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = r"^[1-9][0-9]{0,9}(ms|s|m|h|d)$"


def _milliseconds(text: object) -> int:
    match = re.fullmatch(_DURATION, text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"`{text}` is not a duration: write a number and ms, s, m, h or d, for example 24h")
    unit = match.group(1)
    return int(match.group().removesuffix(unit)) * _UNITS_MS[unit]


TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Milliseconds = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": "string", "pattern": _DURATION, "examples": ["24h", "10m"]}),
]

_STRICT = ConfigDict(frozen=True, extra="forbid")


class EngineChoice(BaseModel):
    """Where the rows of a store are kept."""

    model_config = _STRICT

    engine: Literal["rocksdb", "memory"] = Field(
        default="rocksdb",
        description="`rocksdb` keeps the rows on disk; `memory` reads them from the topic again at each start.",
    )


class History(BaseModel):
    """How many older versions of a key are kept: one of the two."""

    model_config = _STRICT

    versions: int | None = Field(
        default=None, ge=1, le=10_000, description="Keep this many versions of a key beside its newest."
    )
    age: Milliseconds | None = Field(default=None, description="Keep versions that were the newest within this time.")


class StoreDefinition(BaseModel):
    """One store: a topic, how its records are read, and what is kept of them."""

    model_config = _STRICT

    name: TopicName = Field(description="The name by which lookups name the store.")
    topic: TopicName = Field(description="The Kafka topic that the store holds.")
    message: str = Field(
        description="What the values are: the full name of a message of the contract; in plain stores also `json` or "
        "`bytes`."
    )
    format: Literal["state-record", "plain"] = Field(
        default="state-record",
        description="`state-record` reads the keyed topics of the processor; `plain` takes the newest value of each "
        "record key in any topic.",
    )
    partitioner: Literal["murmur2", "crc32"] = Field(
        default="murmur2",
        description="How the producers of a plain topic choose the partition of a key: `murmur2` as Java clients do, "
        "`crc32` as librdkafka's do unless they are told otherwise.",
    )
    store: EngineChoice = Field(default=EngineChoice(), description="Where the rows are kept.")
    replicas: int | None = Field(
        default=None, ge=1, le=16, description="How many instances hold each partition; absent takes the setting."
    )
    retain: Milliseconds | None = Field(
        default=None, description="Rows of a plain store are absent once their record is older than this."
    )
    history: History | None = Field(default=None, description="Which older versions of a key are kept; absent: none.")
    owner: str | None = Field(
        default=None, min_length=1, description="The field of the value that names the customer who may see it."
    )

    @property
    def in_memory(self) -> bool:
        """Whether the rows are kept in memory alone."""
        return self.store.engine == "memory"

    @property
    def plain(self) -> bool:
        """Whether the records are taken as they are."""
        return self.format == "plain"


class StoresFile(BaseModel):
    """The stores of a query service, the same at all of its instances."""

    model_config = _STRICT

    stores: tuple[StoreDefinition, ...] = Field(description="What is served, in any order.")
