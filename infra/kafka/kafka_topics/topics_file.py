"""Reads the file that declares the topics, refuses what it does not understand, and compares it with what exists."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kafka_topics import TopicsFileError

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
TOPIC_KEYS = ("name", "partitions", "config")
MAX_PARTITIONS = 10_000


@dataclass(frozen=True)
class Topic:
    """A topic as it is declared; `config` has Kafka's names and values, only those that the file names."""

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, which YAML would silently drop."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_topics(path: Path) -> list[Topic]:
    """Returns the topics in the order of the file. Raises TopicsFileError naming the file and the key."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)  # noqa: S506  it is a SafeLoader
    except (OSError, UnicodeDecodeError) as error:
        raise TopicsFileError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise TopicsFileError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    try:
        return _topics(document)
    except TopicsFileError as error:
        raise TopicsFileError(f"{path}: {error}") from error


def _topics(document: object) -> list[Topic]:
    if not isinstance(document, dict):
        raise TopicsFileError("must be a mapping with the key `topics`")
    _refuse_unknown(document, ("topics",))
    entries = document.get("topics")
    if not isinstance(entries, list) or not entries:
        raise TopicsFileError("topics: must be a list of one topic or more")
    topics = [_topic(entry, f"topics[{index}]") for index, entry in enumerate(entries)]
    names = [topic.name for topic in topics]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise TopicsFileError(f"topics[{index}].name: {name} is declared twice")
    return topics


def _topic(entry: object, where: str) -> Topic:
    if not isinstance(entry, dict):
        raise TopicsFileError(f"{where}: must be a mapping with the keys {', '.join(TOPIC_KEYS)}")
    _refuse_unknown(entry, TOPIC_KEYS, f"{where}.")
    return Topic(
        _name(entry.get("name"), f"{where}.name"),
        _partitions(entry.get("partitions"), f"{where}.partitions"),
        _config(entry.get("config", {}), f"{where}.config"),
    )


def _refuse_unknown(mapping: Mapping[object, object], known: tuple[str, ...], prefix: str = "") -> None:
    for key in mapping:
        if key not in known:
            raise TopicsFileError(f"{prefix}{key}: unknown key; known are {', '.join(known)}")


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not LEGAL_NAME.fullmatch(value) or value in {".", ".."}:
        raise TopicsFileError(f"{where}: {value!r} must be 1 to 249 letters, digits, dots, underscores or hyphens")
    return value


def _partitions(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_PARTITIONS:
        raise TopicsFileError(f"{where}: {value!r} must be a whole number from 1 to {MAX_PARTITIONS}")
    return value


def _config(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise TopicsFileError(f"{where}: must be a mapping of Kafka's topic settings")
    for name in value:
        if not isinstance(name, str):
            raise TopicsFileError(f"{where}.{name}: the name of a setting must be text")
    return {name: _setting(entry, f"{where}.{name}") for name, entry in value.items()}


def _setting(value: object, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TopicsFileError(f"{where}: {value!r} must be text, a number, true or false")


def differences(declared: Sequence[Topic], actual: Mapping[str, Topic]) -> list[str]:
    """Returns one line for each difference, in the order of the declaration.

    `actual` has all settings of each topic, by name; settings that the declaration does not name are not compared.
    """
    lines: list[str] = []
    for topic in declared:
        if topic.name in actual:
            lines += _topic_differences(topic, actual[topic.name])
        else:
            lines.append(f"{topic.name}: does not exist; run kafka-topics again")
    return lines


def _topic_differences(declared: Topic, existing: Topic) -> Iterator[str]:
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
