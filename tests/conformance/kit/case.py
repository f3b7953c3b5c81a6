"""A case as its file says it: the input, the pipelines, and the rows, counts and messages that it expects."""

import base64
import json
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

CASES = Path(__file__).resolve().parents[1] / "cases"
NUMBER = "{n}"
"""Stands in keys and values of a record with `count` for the number of each, from 0."""

Bytes = str | int | float | dict[str, Any] | list[Any] | None
"""Text; an object or a list, which is written as JSON; `{hex: …}` or `{base64: …}`; null."""


class Strict(BaseModel):
    """Refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ImportedTable(Strict):
    """A table that `statecast import` brings in, with the command's options."""

    shapes: list[Literal["latest", "members", "aggregate"]] = ["latest"]
    group: str | None = None
    sort: str | None = None
    owner: str | None = None
    edit: dict[str, Any] = Field({}, description="Keys that are edited in each pipeline that was written.")


class Topic(Strict):
    """A topic that exists before any step."""

    partitions: int = 1
    compacted: bool = False
    config: dict[str, str] = {}


class Producer(Strict):
    """A producer of a case, by its name; librdkafka's words."""

    partitioner: str = "murmur2_random"
    transactions: bool = False


class Record(Strict):
    """A record, or `count` of them."""

    topic: str
    key: Bytes = None
    value: Bytes = None
    headers: dict[str, Bytes] = {}
    timestamp: int | None = Field(None, description="In milliseconds since 1970, as Kafka takes it.")
    partition: int | None = None
    count: int = 1


class TopicChange(Strict):
    """A change of a topic while all runs."""

    create: str | None = None
    delete: str | None = None
    grow: str | None = None
    partitions: int = 1


class Step(Strict):
    """One thing that happens."""

    sql: str | None = Field(None, description="Statements of one session, which commits each unless they BEGIN.")
    session: str = Field("", description="A connection by its name, which stays open.")
    produce: list[Record] | None = None
    transaction: Literal["begin", "flush", "commit", "abort"] | None = None
    by: str = Field("", description="The producer of the records, or of the transaction.")
    topic: TopicChange | None = None
    until: dict[str, dict[str, Any]] | None = Field(None, description="Rows of stores that are waited for.")
    import_: str | None = Field(None, alias="import", description="A table to import while the connector runs.")
    processor: Literal["stop", "start"] | None = Field(None, description="Stops it when it has read all, or starts it.")

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        things = (self.sql, self.produce, self.transaction, self.until, self.topic, self.import_, self.processor)
        if sum(thing is not None for thing in things) != 1:
            raise ValueError("a step is one of sql, produce, transaction, until, topic, import and processor")
        return self


class Refused(Strict):
    """Where something is refused, and words of the refusal."""

    at: Literal["import", "check", "start"]
    says: list[str]


class Expected(Strict):
    """The results that must be seen in the end."""

    stores: dict[str, dict[str | int, Any]] = Field({}, description="All rows of each store, by key or group/member.")
    outcomes: dict[str, dict[str, int]] = Field({}, description="Per pipeline how many records ended how.")
    dead_letters: dict[str, list[str]] = Field({}, description="Per topic words of each letter's reason.")
    log: list[str] = Field([], description="Words of lines of the processor's log.")
    refused: Refused | None = None
    doctor: list[str] = Field([], description="Words of lines of `statecast doctor`.")


class Case(Strict):
    """A case; `group` is the directory of its file, `name` the file's."""

    group: str
    name: str
    title: str
    input: str
    holds: str
    source: Literal["postgres", "mariadb", "topic"] = "topic"
    tables: dict[str, ImportedTable] = {}
    connector: dict[str, str | None] | None = Field(
        None, description="Settings of a connector of the case's own; null takes it out of those that import writes."
    )
    before: str = Field("", description="SQL that has run before the connector starts.")
    topics: dict[str, Topic] = {}
    messages: str = Field("", description="Messages, as in a .proto file. Of a message Row there is RowChange, too.")
    pipelines: dict[str, dict[str, Any]] = {}
    stores: dict[str, dict[str, Any]] = Field({}, description="Plain stores, by name.")
    producers: dict[str, Producer] = {}
    steps: list[Step] = []
    expect: Expected
    pending: str = Field("", description="What is seen instead, where the product does not hold it yet.")
    long: bool = Field(False, description="Whether `make test` has no time for it.")

    @property
    def runs(self) -> bool:
        """Whether pipelines of the case run; one that `check` refuses does not."""
        return self.expect.refused is None or self.expect.refused.at != "check"

    @property
    def tables_at_once(self) -> list[str]:
        """The tables that are imported before the connector starts."""
        return [table for table in self.tables if table not in [step.import_ for step in self.steps]]

    @property
    def identifier(self) -> str:
        """The name as schemas, databases and packages can have it."""
        return self.name.replace("-", "_")


def read_cases(directory: Path = CASES) -> list[Case]:
    """Returns all cases, in the order of their files. Raises pydantic.ValidationError for one that is wrong."""
    files = sorted(directory.glob("*/*.yaml"))
    cases = [Case(group=file.parent.name, name=file.stem, **yaml.safe_load(file.read_text())) for file in files]
    names = [case.name for case in cases]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two cases have one name: {', '.join(sorted(doubled))}")
    return cases


def encoded(value: Bytes, number: int = 0) -> bytes | None:
    """Returns the bytes that a key, a value or a header says, with the number of the record in it."""
    match value:
        case None:
            return None
        case {"hex": str(digits), **rest} if not rest:
            return bytes.fromhex(digits)
        case {"base64": str(text), **rest} if not rest:
            return base64.b64decode(text)
        case dict() | list():
            text = json.dumps(value, ensure_ascii=False)
        case _:
            text = str(value)
    return text.replace(NUMBER, str(number)).encode()
