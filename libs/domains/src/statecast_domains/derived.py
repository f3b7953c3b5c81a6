"""A topic as it follows from domains, with the access of each service."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

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
        """Returns the topic to which the service may do that, too."""
        allowed = {*self.access.get(service, ()), *operations}
        ordered = tuple(each for each in OPERATIONS if each in allowed)
        return replace(self, access={**self.access, service: ordered})

    @property
    def entry(self) -> dict[str, object]:
        """The topic's entry in the topics file."""
        access = {service: list(operations) for service, operations in self.access.items()}
        return {"name": self.name, "partitions": self.partitions, "config": dict(self.config), "access": access}
