"""Derives from domains: topics with their access, and the stores of the query service and of the edge."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from statecast_domains.domain_file import BYTES, PlainStoreSection
from statecast_domains.pipeline_file import PipelineFile
from statecast_domains.sections import HistorySection, OwnerSection, PrivateSection, Readers
from statecast_domains.values import human

Operation = Literal["Read", "Write", "DescribeConfigs"]
OPERATIONS: tuple[Operation, ...] = ("Read", "Write", "DescribeConfigs")
PROCESSOR, QUERY_SERVICE, EDGE, JOBS = "stream-processor", "query-service", "ws-edge", "statecast-jobs"


@dataclass(frozen=True)
class Topic:
    """A topic. `access` are the operations that the ACLs must allow to each service; `about` names its users."""

    name: str
    partitions: int
    config: Mapping[str, str]
    access: Mapping[str, tuple[Operation, ...]] = field(default_factory=dict)
    about: str = ""

    def with_access(self, service: str, *operations: Operation) -> "Topic":
        """The topic to which the service may do that, too."""
        allowed = {*self.access.get(service, ()), *operations}
        ordered = tuple(each for each in OPERATIONS if each in allowed)
        return replace(self, access={**self.access, service: ordered})

    @property
    def entry(self) -> dict[str, object]:
        """The topic's entry in the topics file."""
        access = {service: list(operations) for service, operations in self.access.items()}
        return {"name": self.name, "partitions": self.partitions, "config": dict(self.config), "access": access}


@dataclass(frozen=True)
class Store:
    """A store: of a keyed topic, or with `partitioner` of a plain one. `members`: a group has many values."""

    name: str
    topic: str
    message: str
    readers: Readers | None = "staff"
    """None where the edge does not serve it: its own stores, and bytes."""
    members: bool = False
    engine: str = "rocksdb"
    history: HistorySection | None = None
    replicas: int | None = None
    partitioner: str | None = None
    retain: str | None = None
    about: str = ""
    private: tuple[PrivateSection, ...] = ()
    description: str | None = None
    interval: timedelta | None = None

    @property
    def owner(self) -> str | None:
        """The field of the row that holds its owner's id."""
        return self.readers.field if isinstance(self.readers, OwnerSection) else None

    @property
    def query_entry(self) -> dict[str, object]:
        """The store's entry in the query service's file, which has defaults for keys that are left out."""
        history = self.history and {
            key: human(value) if key == "age" else value for key, value in self.history if value is not None
        }
        chosen: dict[str, object | None] = {
            "format": "plain" if self.partitioner else None,
            "partitioner": self.partitioner if self.partitioner != "murmur2" else None,
            "store": {"engine": self.engine} if self.engine != "rocksdb" else None,
            "replicas": self.replicas,
            "retain": self.retain,
            "history": history,
            "owner": self.owner,
        }
        always = {"name": self.name, "topic": self.topic, "message": self.message}
        return always | {key: value for key, value in chosen.items() if value is not None}

    @property
    def edge_entry(self) -> dict[str, object]:
        """The store's entry in the edge's file."""
        owner: object = self.readers
        if isinstance(self.readers, OwnerSection):
            owner = {"field": self.readers.field} | ({"group": True} if self.readers.group else {})
        keeps = "members" if self.members else "one"
        chosen: dict[str, object | None] = {
            "private": [{"path": each.path, "owner": each.owner} for each in self.private] or None,
            "description": self.description,
            "interval_ms": self.interval and self.interval // timedelta(milliseconds=1),
        }
        entry: dict[str, object] = {"name": self.name, "message": self.message, "keeps": keeps, "owner": owner}
        return entry | {key: value for key, value in chosen.items() if value is not None}


def keyed_store(pipeline: PipelineFile, about: str) -> Store:
    """The store of a pipeline that keeps something."""
    chosen = pipeline.kept_as
    return Store(
        pipeline.name,
        pipeline.sink.topic,
        pipeline.sink.message or pipeline.row_message,
        chosen.readers,
        # A window is a member of its group, by its start.
        pipeline.keep.members is not None or pipeline.window is not None,
        chosen.engine,
        chosen.history,
        chosen.replicas,
        about=about,
        private=tuple(chosen.private),
        description=chosen.description,
        interval=chosen.interval,
    )


def plain_store(store: PlainStoreSection, about: str) -> Store:
    """The store of a topic that is served as it is."""
    return Store(
        store.name,
        store.topic,
        store.message,
        None if store.message == BYTES else store.readers,
        False,
        store.engine,
        store.history,
        store.replicas,
        store.partitioner,
        human(store.retain) if store.retain else None,
        about,
        tuple(store.private),
        store.description,
        store.interval,
    )
