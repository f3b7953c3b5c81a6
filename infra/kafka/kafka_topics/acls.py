"""Lists the Kafka ACLs that each service needs, with the fewest rights that it can run with."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_topics.topics_file import Topic

GROUPS = (
    ("query-service", "Read", "query-service"),
    ("query-service", "Describe", "stream-processor"),
    ("stream-processor", "Read", "stream-processor"),
    ("statecast-jobs", "Describe", "statecast-jobs"),
)
"""The operation of each service on groups, by prefix of their names; Describe is for groups that it never joins."""
OWN = ("Create", "Describe", "DescribeConfigs")
"""The operations of `kafka-topics` itself on each topic."""


@dataclass(frozen=True)
class Acl:
    """Operations allowed to a service on topics with these names, or on groups with these prefixes."""

    service: str
    operations: tuple[str, ...]
    kind: str
    names: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The arguments of `kafka-acls --add`."""
        operations = [f"--operation {each}" for each in self.operations]
        names = [f"--{self.kind} {each}" for each in self.names]
        pattern = ["--resource-pattern-type prefixed"] if self.kind == "group" else []
        return " ".join([f"--allow-principal User:{self.service}", *operations, *names, *pattern])


def acls(topics: Sequence[Topic], group_prefix: str = "") -> list[Acl]:
    """Returns one ACL for each service and set of operations; services have their names in the file.

    `group_prefix` is the prefix of all groups in the services' settings.
    """
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for topic in topics:
        for service, operations in topic.access.items():
            names.setdefault((service, operations), []).append(topic.name)
    of_topics = [Acl(service, operations, "topic", tuple(each)) for (service, operations), each in names.items()]
    of_groups = [Acl(service, (operation,), "group", (group_prefix + name,)) for service, operation, name in GROUPS]
    own = Acl("kafka-topics", OWN, "topic", tuple(topic.name for topic in topics))
    return [*of_topics, *of_groups, own]
