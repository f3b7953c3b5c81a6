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
    """A topic that others write: the source of pipelines, or one that is served as it is."""

    name: sections.Topic
    partitions: sections.Partitions = Field(4, description=sections.PARTITIONS_ARE)
    retention: Duration | None = Field(
        None, description="How long records are kept. Default: 7d, and for good in a compacted topic."
    )
    compacted: bool = Field(False, description="Whether the newest record of each key stays.")
    config: sections.TopicConfig = Field({}, description=sections.CONFIG_IS)
    writers: list[str] = Field([], description="Who writes it, by the names of Kafka's ACLs: `[cdc-simulator]`.")


class PlainStoreSection(StoreSection):
    """A topic that no pipeline writes, served as it is: the newest value of each record key."""

    name: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="The name by which lookups name the store.")
    topic: sections.Topic
    message: str = Field(description="What the values are: the full name of a message, `json` or `bytes`.")
    partitioner: Literal["murmur2", "crc32", "fnv1a", "fnv1a_reference"] = Field(
        "murmur2",
        description="How producers choose a key's partition: `murmur2` as Java clients do, `crc32` as librdkafka's do "
        "by default, `fnv1a` as Sarama and kafka-go do, `fnv1a_reference` as Sarama's NewReferenceHashPartitioner.",
    )
    retain: Duration | None = Field(
        None,
        gt=timedelta(0),
        description="Rows are absent once their record is older than this; a watch that has one keeps it until it "
        "begins anew. Default: they stay.",
    )


class DomainFile(Section):
    """The parts of a domain beside its pipelines."""

    description: str | None = Field(None, description="One line, for the files that are made of this one.")
    topic_prefix: Annotated[str, AfterValidator(_prefix)] = Field(
        "", description="What the topics that every system has begin with, where Kafka lets its user have no others."
    )
    topics: list[TopicSection] = Field([], description="Topics that others write.")
    stores: list[PlainStoreSection] = Field([], description="Plain topics that are served as they are.")


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
