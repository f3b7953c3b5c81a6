"""Derives topics and stores from domains, and refuses domains that contradict each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from statecast_domains.derived import EDGE, PROCESSOR, QUERY_SERVICE, Topic
from statecast_domains.domain import Domain
from statecast_domains.domain_file import DomainFile, TopicSection
from statecast_domains.errors import DomainFileError, PipelineFileError
from statecast_domains.own_topics import KEPT, edge_stores, own_topics
from statecast_domains.pipeline_file import PipelineFile
from statecast_domains.row_topics import CLEANUP_POLICY, COMPACTION_LAG, keeps_rows, misread_topics
from statecast_domains.store_definition import StoreDefinition, keyed_store, plain_store
from statecast_service.settings import suggest
from statecast_service.topic_names import MAX_TOPIC_NAME, is_topic_name

DEAD_LETTER = ".dead-letter"
DEFAULT_MAX_BYTES, LETTER_HEADERS_BYTES = 1_048_588, 16_384
"""Kafka's own `max.message.bytes`, and the bytes that the headers of a dead letter may add to the record."""
HIGHEST_MAX_BYTES = 2**31 - 1
"""The highest `max.message.bytes` that Kafka takes."""
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Derivation:
    """All topics and stores of a system: those of its domains in their order, then those that every system has."""

    topics: Sequence[Topic]
    stores: Sequence[StoreDefinition]
    store_users: Mapping[str, str]
    """The users of each store by its name, as Topic.about names those of a topic."""


def derive(domains: Sequence[Domain]) -> Derivation:
    """Raises DomainFileError or PipelineFileError for a name that is defined twice, or a topic that is not declared."""
    system = _System()
    for domain in domains:
        system.declare(domain)
    for domain in domains:
        system.connect(domain)
    prefix = _prefix(domains)
    for topic in own_topics(prefix):
        if topic.name in system.topics:
            problem = f"every system has a topic {topic.name} of its own: take this one out, or rename it"
            raise DomainFileError(system.named_in[topic.name], "", problem)
        system.topics[topic.name] = topic
    for store in edge_stores(prefix):
        system.add_store(store, KEPT, f"what {EDGE} keeps", "name")
    return Derivation(list(system.topics.values()), list(system.stores.values()), system.store_users)


def _prefix(domains: Sequence[Domain]) -> str:
    first = domains[0]
    for other in domains[1:]:
        if other.file.topic_prefix != first.file.topic_prefix:
            problem = (
                f"is {other.file.topic_prefix!r}, and {first.file.topic_prefix!r} in {first.domain_file}: make it one"
            )
            raise DomainFileError(str(other.domain_file), "topic_prefix", problem)
    return first.file.topic_prefix


@dataclass
class _System:
    """The system's parts that are known so far, by name."""

    topics: dict[str, Topic] = field(default_factory=dict)
    stores: dict[str, StoreDefinition] = field(default_factory=dict)
    store_users: dict[str, str] = field(default_factory=dict)
    named_in: dict[str, str] = field(default_factory=dict)
    """The file that declares each topic or writes it."""
    pipelines: dict[str, str] = field(default_factory=dict)
    """The file of each pipeline."""
    placed_in: dict[str, str] = field(default_factory=dict)
    """File that chooses the partitions of a topic, by topic, where the keys do not choose them."""

    def declare(self, domain: Domain) -> None:
        """The topics of a domain: those that others write, and sinks."""
        about = domain.file.description or f"Domain {domain.name}."
        for index, declared in enumerate(domain.file.topics):
            self._add_topic(_outside(declared, about), domain.domain_file, f"topics[{index}].name")
        for file, pipeline in domain.pipelines.items():
            self._add_topic(_sink(pipeline, about), file, "sink.topic")
            if pipeline.sink.partition_by is not None:
                self.placed_in[pipeline.sink.topic] = str(file)

    def connect(self, domain: Domain) -> None:
        """Adds the domain's pipelines, the topics that they read, and its stores."""
        about = domain.file.description or f"Domain {domain.name}."
        for file, pipeline in domain.pipelines.items():
            if pipeline.name in self.pipelines:
                problem = f"{pipeline.name} is also the name of {self.pipelines[pipeline.name]}"
                raise PipelineFileError(str(file), "name", problem)
            self.pipelines[pipeline.name] = str(file)
            for key, topic in _read(pipeline):
                self._allow(topic, str(file), key, PROCESSOR, "Read")
            self._read_sources(file, pipeline)
            if pipeline.keep.shape != "route":
                self.add_store(keyed_store(pipeline), about, str(file), "name")
        for index, plain in enumerate(domain.file.stores):
            if plain.topic in self.placed_in:
                problem = (
                    f"{plain.topic} is placed by sink.partition_by of {self.placed_in[plain.topic]}, not by its keys"
                )
                raise DomainFileError(
                    str(domain.domain_file), f"stores[{index}].topic", f"{problem}: no lookup would find them"
                )
            self.add_store(plain_store(plain), about, str(domain.domain_file), f"stores[{index}].name")

    def _read_sources(self, file: object, pipeline: PipelineFile) -> None:
        for section, source in pipeline.sources.items():
            if source.row_values is not None or keeps_rows(pipeline):
                self._allow(source.topic, str(file), f"{section}.topic", PROCESSOR, "DescribeConfigs")
            if source.table is not None:
                self._delay_compaction(source.topic)
            self._add_dead_letters(source.topic)
        policies = {name: topic.config[CLEANUP_POLICY] for name, topic in self.topics.items()}
        for key, problem in misread_topics(pipeline, policies):
            raise PipelineFileError(str(file), key, problem)

    def _add_topic(self, topic: Topic, file: object, key: str) -> None:
        former = self.named_in.setdefault(topic.name, str(file))
        if topic.name in self.topics:
            raise DomainFileError(str(file), key, f"the topic {topic.name} is also that of {former}")
        self.topics[topic.name] = topic

    def _add_dead_letters(self, source: str) -> None:
        name = f"{source}{DEAD_LETTER}"
        if name in self.topics:
            return
        if not is_topic_name(name):
            longest = f"and a source has at most {MAX_TOPIC_NAME - len(DEAD_LETTER)}: {DEAD_LETTER} is added"
            problem = f"the topic {source} has {len(source)} characters, {longest}"
            raise DomainFileError(self.named_in[source], "", problem)
        limit = int(self.topics[source].config.get("max.message.bytes", DEFAULT_MAX_BYTES))
        largest = min(limit + LETTER_HEADERS_BYTES, HIGHEST_MAX_BYTES)
        config = {"cleanup.policy": "delete", "retention.ms": str(14 * _DAY_MS), "max.message.bytes": str(largest)}
        letters = Topic(name, 1, config, about=self.topics[source].about).with_access(
            PROCESSOR, "Read", "Write", "DescribeConfigs"
        )
        self.topics = _with_next(self.topics, source, letters)

    def _delay_compaction(self, table: str) -> None:
        """Delays the table's compaction.

        After a restart, a reader of the table as changes must find the records that it has read since its checkpoint.
        """
        topic = self.topics[table]
        self.topics[table] = replace(topic, config={COMPACTION_LAG: str(_DAY_MS), **topic.config})

    def add_store(self, store: StoreDefinition, about: str, file: str, key: str) -> None:
        """Adds a store, which the query service reads."""
        if store.name in self.stores:
            raise DomainFileError(file, key, f"there is another store {store.name}: take another name")
        if other := next((each.name for each in self.stores.values() if each.topic == store.topic), None):
            raise DomainFileError(file, key, f"the topic {store.topic} is already that of the store {other}")
        self._allow(store.topic, file, key.replace("name", "topic"), QUERY_SERVICE, "Read", "DescribeConfigs")
        self.stores[store.name], self.store_users[store.name] = store, about

    def _allow(self, topic: str, file: str, key: str, service: str, *operations: str) -> None:
        if topic not in self.topics:
            hint = suggest(topic, self.topics)
            problem = f"no pipeline writes {topic}, and no domain.yaml declares it under topics: {hint}"
            raise PipelineFileError(file, key, problem)
        self.topics[topic] = self.topics[topic].with_access(service, *operations)  # type: ignore[arg-type]


def policies_of(domain: DomainFile) -> dict[str, str]:
    """Returns the `cleanup.policy` of each topic that the domain declares."""
    return {each.name: _outside(each, "").config[CLEANUP_POLICY] for each in domain.topics}


def _outside(declared: TopicSection, about: str) -> Topic:
    kept = declared.retention
    config = {CLEANUP_POLICY: "compact" if declared.compacted else "delete"}
    if declared.compacted and kept is not None:
        config[CLEANUP_POLICY] = "compact,delete"
    if kept is not None or not declared.compacted:
        config["retention.ms"] = str(round(kept.total_seconds() * 1000) if kept is not None else 7 * _DAY_MS)
    topic = Topic(declared.name, declared.partitions, {**config, **declared.config}, about=about)
    for writer in declared.writers:
        topic = topic.with_access(writer, "Write")
    return topic


def _sink(pipeline: PipelineFile, about: str) -> Topic:
    # Else compaction may leave the older record of a replay alone, under the higher position: see ADR 0003.
    kept: Mapping[str, str] = {"cleanup.policy": "compact", COMPACTION_LAG: str(_DAY_MS)}
    if pipeline.keep.shape == "route":
        kept = {"cleanup.policy": "delete", "retention.ms": str(7 * _DAY_MS)}
    topic = Topic(pipeline.sink.topic, pipeline.sink.partitions, {**kept, **pipeline.sink.config}, about=about)
    return topic.with_access(PROCESSOR, "Read", "Write", "DescribeConfigs")


def _read(pipeline: PipelineFile) -> Iterator[tuple[str, str]]:
    for section, source in pipeline.sources.items():
        yield f"{section}.topic", source.topic
    for index, join in enumerate(pipeline.joins):
        yield f"joins[{index}].topic", join.topic


def _with_next(topics: Mapping[str, Topic], before: str, added: Topic) -> dict[str, Topic]:
    """Returns the topics with another one right after that of the name."""
    result = {}
    for name, topic in topics.items():
        result[name] = topic
        if name == before:
            result[added.name] = added
    return result
