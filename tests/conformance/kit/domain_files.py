"""Writes the messages and the pipelines of a case, under names that no other case has."""

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kit.case import Case

PACKAGE = "conformance"
_MESSAGE = re.compile(r"^message (\w+)", re.MULTILINE)
_HEAD = """\
syntax = "proto3";
package {package};
import "google/protobuf/timestamp.proto";
import "statecast/change/v1/change.proto";
import "statecast/change/v1/decimal.proto";
"""
_CHANGE = """
message {name}Change {{
  statecast.change.v1.Operation operation = 1;
  statecast.change.v1.Source source = 2;
  {name} before = 3;
  {name} after = 4;
}}
"""


def package_of(case: Case) -> str:
    """Returns the package of the case's messages."""
    return f"{PACKAGE}.{case.identifier}"


def topic_of(case: Case, name: str) -> str:
    """Returns the topic of the case, or of its table, by the name in its file."""
    return f"{case.name}.{name}" if case.source == "topic" else f"{prefix_of(case)}.{case.identifier}.{name}"


def prefix_of(case: Case) -> str:
    """Returns the prefix of the connector's topics: the case's own, or the one that all without settings share."""
    return case.source if case.connector is None else f"{case.source}-{case.name}"


def sink_of(case: Case, name: str) -> str:
    """Returns the topic that a pipeline of the case's file fills."""
    return f"{case.name}.by.{name}"


def store_of(case: Case, name: str) -> str:
    """Returns the store, and the pipeline, by the name in the case's file."""
    return f"{case.name}-{name}"


def write_domain(case: Case, messages: Path, pipelines: Path) -> None:
    """Writes the case's messages, and a domain of its pipelines, topics and stores."""
    if case.messages:
        changes = [_CHANGE.format(name=name) for name in _MESSAGE.findall(case.messages)]
        text = "\n".join([_HEAD.format(package=package_of(case)), case.messages, *changes])
        messages.mkdir(parents=True, exist_ok=True)
        (messages / f"{case.identifier}.proto").write_text(text)
    pipelines.mkdir(parents=True, exist_ok=True)
    for name, content in case.pipelines.items():
        (pipelines / f"{store_of(case, name)}.yaml").write_text(yaml.safe_dump(_pipeline(case, name, content)))
    domain = {"topics": list(_topics(case)), "stores": list(_stores(case))}
    (pipelines / "domain.yaml").write_text(yaml.safe_dump(domain))


def edit_pipelines(case: Case, table: str, pipelines: Path) -> None:
    """Edits the pipelines that `statecast import` wrote of a table, as the case says."""
    for file in pipelines.glob(f"{store_of(case, table)}-*.yaml"):
        file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **case.tables[table].edit}))


def _pipeline(case: Case, name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    written = {"name": store_of(case, name), "sink": {}, **copy.deepcopy(dict(content))}
    written["sink"] = {"topic": sink_of(case, name), "partitions": 1, **written["sink"]}
    for section in [written["source"], written["sink"], *written.get("joins", ()), written.get("table_join", {})]:
        if "topic" in section and section is not written["sink"]:
            section["topic"] = _source(case, section)
        if "message" in section and "." not in section["message"]:
            section["message"] = f"{package_of(case)}.{section['message']}"
    return written


def _source(case: Case, section: Mapping[str, Any]) -> str:
    """Returns the topic that is read: a table's, one of the case's, or that of another of its pipelines."""
    named = str(section["topic"])
    return sink_of(case, named) if named in case.pipelines else topic_of(case, named)


def _topics(case: Case) -> Iterator[dict[str, Any]]:
    for name, topic in case.topics.items():
        yield {"name": topic_of(case, name), "partitions": 1, **topic.model_dump(exclude_defaults=True)}


def _stores(case: Case) -> Iterator[dict[str, Any]]:
    for name, store in case.stores.items():
        message = store["message"]
        full = message if message in ("json", "bytes") or "." in message else f"{package_of(case)}.{message}"
        yield {**store, "name": store_of(case, name), "topic": topic_of(case, store["topic"]), "message": full}
