"""The form of `domain.yaml`: the parts of a domain beside its pipelines."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from statecast_domains import sections
from statecast_domains.errors import DomainFileError
from statecast_domains.section_files import read_sections, schema_of
from statecast_domains.sections import Section, StoreSection
from statecast_domains.values import Duration
from statecast_service.topic_names import is_topic_name

JSON, BYTES = "json", "bytes"


def _prefix(text: str) -> str:
    if text and not is_topic_name(f"{text}x"):
        raise ValueError(f"{text!r} begins no topic: it has letters, digits, dots, _ and - only")
    return text


class TopicSection(Section):
    """A topic that others write: a source of pipelines, or a topic served without one."""

    name: sections.Topic
    partitions: sections.Partitions = Field(4, description=sections.PARTITIONS_ARE)
    retention: Duration | None = Field(
        None, description="How long records are kept. Default: 7d, and for good in a compacted topic."
    )
    compacted: bool = Field(False, description="Compacts the topic, so the newest record of each key stays.")
    config: sections.TopicConfig = Field({}, description=sections.CONFIG_IS)
    writers: list[str] = Field([], description="Writers, by their names in Kafka's ACLs: `[cdc-simulator]`.")


class PlainStoreSection(StoreSection):
    """A topic that is served without a pipeline: the newest value of each record key."""

    name: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="The name of the store in lookups.")
    topic: sections.Topic
    message: str = Field(description="The form of the values: the full name of a message, `json` or `bytes`.")
    partitioner: Literal["murmur2", "crc32", "fnv1a", "fnv1a_reference"] = Field(
        "murmur2",
        description="The producers' partitioner: `murmur2` of Java clients, `crc32` of librdkafka's clients by "
        "default, `fnv1a` of Sarama and kafka-go, or `fnv1a_reference` of Sarama's NewReferenceHashPartitioner.",
    )
    retain: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="Reads leave out rows whose record is older than this. A watch keeps the rows that it has until it "
        "begins anew. Default: rows stay.",
    )


class DomainFile(Section):
    """The parts of a domain beside its pipelines."""

    description: str | None = Field(None, description="One line for the files that are generated from this one.")
    topic_prefix: Annotated[str, AfterValidator(_prefix)] = Field(
        "", description="Prefix of the topics that every system has, if Kafka allows its user only such names."
    )
    topics: list[TopicSection] = Field([], description="Topics that others write.")
    stores: list[PlainStoreSection] = Field([], description="Plain topics that are served without a pipeline.")


def read_domain_file(file: Path) -> DomainFile:
    """Returns the file's content. Raises DomainFileError naming the file, the key and the nearest valid name."""
    definition = read_sections(file, DomainFile, DomainFileError, "a domain")
    for key, problem in _misplaced(definition):
        raise DomainFileError(str(file), key, problem)
    return definition


def _misplaced(definition: DomainFile) -> Iterator[tuple[str, str]]:
    for index, store in enumerate(definition.stores):
        at = f"stores[{index}]"
        if store.message == BYTES and store.readers != "staff":
            yield f"{at}.readers", "has no meaning with message: bytes, which the edge does not serve"
        age = store.history.age if store.history else None
        if age is not None and store.retain is not None and age > store.retain:
            yield f"{at}.history.age", "is above retain, and versions go with their rows: lower it"


def schema_text() -> str:
    """Returns the schema as domains/domain.schema.json holds it."""
    return schema_of(DomainFile, "A domain of Statecast")
