"""Finds the differences of domains from a running system or written files: a line each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from statecast_domains.derived import Topic as DerivedTopic
from statecast_domains.store_definition import StoreDefinition
from statecast_service.topics import Topic, differences

Entry = Mapping[str, Any]
GONE = "no file names it any more"


@dataclass(frozen=True)
class Difference:
    """One line. With `kept_back` it is applied only when asked for, with `never` not at all."""

    sign: Literal["+", "~", "-"]
    text: str
    kept_back: bool = False
    never: bool = False

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def of_topics(declared: Sequence[DerivedTopic], actual: Mapping[str, Topic]) -> Iterator[Difference]:
    """Finds the topics of Kafka that are missing or not as declared."""
    for topic in declared:
        existing = actual.get(topic.name)
        if existing is None:
            config = ", ".join(f"{name}={value}" for name, value in topic.config.items())
            yield Difference("+", f"topic {topic.name}: {topic.partitions} partitions, {config}")
            continue
        for line in differences([topic], actual):
            # Where a key lives follows from the number of partitions.
            yield Difference("~", f"topic {line}", never=f"{topic.name}: has {existing.partitions} partitions" in line)


def of_served(declared: Sequence[StoreDefinition], served: Mapping[str, str]) -> Iterator[Difference]:
    """Stores that the query service does not serve, or from another topic; `served` has the topic of each."""
    for store in declared:
        topic = served.get(store.name)
        if topic is None:
            yield Difference("+", f"store {store.name}: is not served yet")
        elif topic != store.topic:
            text = f"store {store.name}: is served from {topic}, the files say {store.topic}"
            yield Difference("~", text, kept_back=True)
    for name in sorted(served.keys() - {store.name for store in declared}):
        yield Difference("-", f"store {name}: is served, and {GONE}", kept_back=True)


def of_entries(file: str, former: Sequence[Entry] | None, new: Sequence[Entry]) -> Iterator[Difference]:
    """Entries of a derived file that come, change or go; one line for a file that was not there."""
    if former is None:
        yield Difference("+", f"{file}: {len(new)} entries")
        return
    before = {entry["name"]: entry for entry in former}
    for entry in new:
        old = before.pop(entry["name"], None)
        if old is None:
            yield Difference("+", f"{file}: {entry['name']}")
            continue
        for key in dict.fromkeys([*old, *entry]):
            if old.get(key) != entry.get(key):
                change = f"{key} is {_text(old.get(key))}, and will be {_text(entry.get(key))}"
                yield Difference("~", f"{file}: {entry['name']}: {change}", kept_back=key in ("partitions", "topic"))
    for name in before:
        yield Difference("-", f"{file}: {name}: {GONE}", kept_back=True)


def _text(value: object) -> str:
    return "left out" if value is None else str(value)
