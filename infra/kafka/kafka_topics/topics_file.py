"""Reads the file that declares the topics, and refuses unknown keys and wrong values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from kafka_topics import TopicsFileError
from statecast_service.topic_names import TopicName
from statecast_service.yaml_files import read_yaml

MAX_PARTITIONS = 10_000
UNKNOWN_KEY = {"extra_forbidden", "unexpected_keyword_argument"}
KEYS = "name, partitions, config, access"
Operation = Literal["Read", "Write", "DescribeConfigs"]
RULES = {
    0: "must be a mapping with the key `topics`",
    1: ": must be a list of one topic or more",
    2: f": must be a mapping with the keys {KEYS}",
    "name": ": {!r} must be 1 to 249 letters, digits, dots, underscores or hyphens",
    "partitions": f": {{!r}} must be a whole number from 1 to {MAX_PARTITIONS}",
    "config": ": must be a mapping of Kafka's topic settings",
    "access": f": must be a mapping of services to lists of {', '.join(get_args(Operation))}",
    4: ": {!r} must be text, a number, true or false",
    5: ": the name of a setting must be text",
}
"""The rule of each key of a topic, and of the values at each other depth of the file."""


def _setting(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


@dataclass(frozen=True)
class Topic:
    """A topic as the file declares it; `config` has only the settings that the file names, under Kafka's names.

    `access` has the operations that the ACLs must allow to each service, under Kafka's names.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: TopicName
    partitions: Annotated[int, Field(strict=True, ge=1, le=MAX_PARTITIONS)]
    config: Mapping[str, Annotated[str, BeforeValidator(_setting)]] = field(default_factory=dict)
    access: Mapping[str, tuple[Operation, ...]] = field(default_factory=dict)


class _TopicsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topics: Annotated[list[Topic], Field(min_length=1)]


def read_topics(path: Path) -> list[Topic]:
    """Returns the topics in the order of the file. Raises TopicsFileError naming the file and the key."""
    try:
        topics = _TopicsFile.model_validate(read_yaml(path)).topics
    except ValidationError as error:
        # A key that is not known comes first: it may be meant for one that is missing.
        first = min(error.errors(), key=lambda details: details["type"] not in UNKNOWN_KEY)
        raise TopicsFileError(f"{path}: {_complaint(first)}") from error
    except ValueError as error:
        raise TopicsFileError(f"{path}: {error}") from error
    names = [topic.name for topic in topics]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise TopicsFileError(f"{path}: topics[{index}].name: {name} is declared twice")
    return topics


def _complaint(details: ErrorDetails) -> str:
    path, kind = details["loc"], details["type"]
    where = re.sub(r"\.(\d+)", r"[\1]", ".".join(str(part) for part in path if part != "[key]"), count=1)
    if kind in UNKNOWN_KEY:
        return f"{where}: unknown key; known are {KEYS if len(path) > 1 else 'topics'}"
    rule = RULES[str(path[2]) if len(path) == 3 or path[2:3] == ("access",) else len(path)]
    return where + rule.format(None if kind == "missing" else details["input"])
