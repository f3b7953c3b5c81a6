"""Compares topics as files declare them with topics as they are; without Kafka."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class DeclaredTopic(Protocol):
    """A topic as a file declares it. `config` has only the settings that the file names, under Kafka's names."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> int: ...
    @property
    def config(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Topic:
    """A topic as it is, with all its settings."""

    name: str
    partitions: int
    config: Mapping[str, str]


def differences(declared: Sequence[DeclaredTopic], actual: Mapping[str, DeclaredTopic]) -> list[str]:
    """Returns one line for each difference, in the order of the declaration.

    `actual` has all settings of each topic, by name; settings that the declaration does not name are not compared.
    """
    return [line for topic in declared for line in _differences(topic, actual.get(topic.name))]


def _differences(declared: DeclaredTopic, existing: DeclaredTopic | None) -> Iterator[str]:
    if existing is None:
        yield f"{declared.name}: does not exist; create it as the file says"
        return
    if declared.partitions != existing.partitions:
        yield (
            f"{declared.name}: has {existing.partitions} partitions, the file says {declared.partitions}; "
            "correct the file, or create a new topic and move its readers (keys would change partition)"
        )
    for name, wanted in declared.config.items():
        actual = existing.config.get(name)
        if actual is None:
            yield f"{declared.name}: {name} is not a setting of this Kafka; correct its name in the file"
        elif actual != wanted:
            quoted = f"[{wanted}]" if "," in wanted else wanted
            yield (
                f"{declared.name}: {name} is {actual}, the file says {wanted}; correct the file, or run "
                f"kafka-configs --alter --topic {declared.name} --add-config {name}={quoted}"
            )
