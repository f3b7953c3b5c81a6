"""The stores file: its entry for each store, and its checks against the contract."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError, WithJsonSchema

from query_service.errors import StoresFileError
from statecast.descriptors import MessageTypes
from statecast_service.settings import suggest
from statecast_service.topic_names import TopicName
from statecast_service.yaml_files import read_yaml

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


StoreName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Milliseconds = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": "string", "pattern": _DURATION, "examples": ["24h", "10m"]}),
]


class EngineChoice(BaseModel, frozen=True, extra="forbid"):
    """Where the rows of a store are kept."""

    engine: Literal["rocksdb", "memory"] = Field(
        default="rocksdb",
        description="`rocksdb` keeps the rows on disk; `memory` reads them from the topic again at each start.",
    )


class History(BaseModel, frozen=True, extra="forbid"):
    """How many older versions of a key are kept: one of the two."""

    versions: int | None = Field(
        default=None, ge=1, le=10_000, description="Keep this many versions of a key beside its newest."
    )
    age: Milliseconds | None = Field(default=None, description="Keep versions that were the newest within this time.")


class StoreDefinition(BaseModel, frozen=True, extra="forbid"):
    """One store: a topic, how its records are read, and how much of them is kept."""

    name: StoreName = Field(description="The name by which lookups name the store.")
    topic: TopicName = Field(description="The Kafka topic that the store holds.")
    message: str = Field(
        description="What the values are: the full name of a message of the contract or of what is mounted; in plain "
        "stores also `json` or `bytes`."
    )
    format: Literal["state-record", "plain"] = Field(
        default="state-record",
        description="`state-record` reads the keyed topics of the processor; `plain` takes the newest value of each "
        "record key in any topic.",
    )
    partitioner: Literal["murmur2", "crc32", "fnv1a", "fnv1a_reference"] = Field(
        default="murmur2",
        description="How the producers of a plain topic choose the partition of a key: `murmur2` as Java clients do, "
        "`crc32` as librdkafka's do unless they are told otherwise, `fnv1a` as Sarama and kafka-go do, "
        "`fnv1a_reference` as Sarama's NewReferenceHashPartitioner does.",
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
        return self.store.engine == "memory"

    @property
    def plain(self) -> bool:
        return self.format == "plain"


class StoresFile(BaseModel, frozen=True, extra="forbid"):
    """The stores of a query service, the same at all of its instances."""

    stores: tuple[StoreDefinition, ...] = Field(description="What is served, in any order.")


_MODELS: Mapping[int | str, type[BaseModel]] = {"store": EngineChoice, "history": History}


def read_stores(path: Path, types: MessageTypes | None = None) -> tuple[StoreDefinition, ...]:
    """Returns the stores of a file by name. Raises StoresFileError with one line.

    Values are messages of `types`, by default of the contract.
    """
    try:
        stores = StoresFile.model_validate(read_yaml(path)).stores
    except ValidationError as error:
        problems = (_field_problem(item["loc"], item["type"], item["msg"]) for item in error.errors())
        raise StoresFileError(f"{path}: {'; '.join(problems)}") from error
    except ValueError as error:
        raise StoresFileError(f"the stores file {path} {error}") from error
    if not stores:
        raise StoresFileError(f"{path}: stores is empty: name at least one")
    types = types or MessageTypes.read()
    for index, store in enumerate(stores):
        problem = _name_problem(store, stores[:index]) or _message_problem(store, types) or _combination_problem(store)
        if problem is not None:
            raise StoresFileError(f"{path}: stores[{index}].{problem}")
    return tuple(sorted(stores, key=lambda store: store.name))


def stores_schema() -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **StoresFile.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def _name_problem(store: StoreDefinition, earlier: tuple[StoreDefinition, ...]) -> str | None:
    if store.name in {other.name for other in earlier}:
        return f"name `{store.name}` is there twice: remove one"
    if store.topic in {other.topic for other in earlier}:
        return f"topic `{store.topic}` is another store's: remove one"
    return None


def _message_problem(store: StoreDefinition, types: MessageTypes) -> str | None:
    if store.message in (JSON, BYTES):
        if not store.plain:
            return f"message `{store.message}` needs `format: plain`: add it, or name a message of the contract"
        if store.owner is not None and store.message == BYTES:
            return "owner needs fields, and `message: bytes` has none: remove it, or name a message"
        return None
    fields = types.fields.get(store.message)
    if fields is None:
        valid = types.rows | ({JSON, BYTES} if store.plain else set())
        return f"message `{store.message}` is not in the contract, nor mounted: {suggest(store.message, valid)}"
    if store.owner is not None and store.owner not in fields:
        return f"owner `{store.owner}` is not a field of {store.message}: {suggest(store.owner, fields)}"
    return None


def _combination_problem(store: StoreDefinition) -> str | None:
    if not store.plain:
        if store.retain is not None:
            return "retain needs `format: plain`: remove it; rows of a keyed topic are deleted by the processor"
        if store.partitioner != "murmur2":
            return "partitioner needs `format: plain`: remove it; keyed topics are partitioned by murmur2"
    history = store.history
    if history is not None and (history.versions is None) == (history.age is None):
        return "history takes either `versions` or `age`: name one of them"
    if history is not None and history.age is not None and store.retain is not None and history.age > store.retain:
        return "history.age is above retain, and versions go with their rows: lower it"
    return None


def _field_problem(location: tuple[int | str, ...], error_type: str, message: str) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    field = "".join(steps).lstrip(".") or "the file"
    if error_type == "extra_forbidden":
        model = StoresFile if len(location) == 1 else _MODELS.get(location[-2], StoreDefinition)
        return f"{field} is not known: {suggest(str(location[-1]), model.model_fields.keys())}"
    return f"{field}: {message.removeprefix('Value error, ')}"
