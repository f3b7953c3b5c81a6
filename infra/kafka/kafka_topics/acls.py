"""What the ACLs of Kafka must allow to each service: as little as it can run with."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_topics.topics_file import Topic

GROUPS = (
    ("query-service", "Read", "query-service"),
    ("query-service", "Describe", "stream-processor"),
    ("stream-processor", "Read", "stream-processor"),
    ("statecast-jobs", "Describe", "statecast-jobs"),
)
"""What each service may do to the groups whose names begin so; one that it never joins is looked for, too."""
OWN = ("Create", "Describe", "DescribeConfigs")
"""What `kafka-topics` itself does to each topic."""


@dataclass(frozen=True)
class Acl:
    """Operations that a service may do to topics of these names, or to groups whose names begin so."""

    service: str
    operations: tuple[str, ...]
    kind: str
    names: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """What `kafka-acls --add` takes."""
        operations = [f"--operation {each}" for each in self.operations]
        names = [f"--{self.kind} {each}" for each in self.names]
        pattern = ["--resource-pattern-type prefixed"] if self.kind == "group" else []
        return " ".join([f"--allow-principal User:{self.service}", *operations, *names, *pattern])


def acls(topics: Sequence[Topic], group_prefix: str = "") -> list[Acl]:
    """Returns one for each service and set of operations; a service is called as the file calls it.

    `group_prefix` is what the services' groups begin with by their settings.
    """
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for topic in topics:
        for service, operations in topic.access.items():
            names.setdefault((service, operations), []).append(topic.name)
    of_topics = [Acl(service, operations, "topic", tuple(each)) for (service, operations), each in names.items()]
    of_groups = [Acl(service, (operation,), "group", (group_prefix + name,)) for service, operation, name in GROUPS]
    own = Acl("kafka-topics", OWN, "topic", tuple(topic.name for topic in topics))
    return [*of_topics, *of_groups, own]
