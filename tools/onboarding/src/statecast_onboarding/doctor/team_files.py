"""The files of a team, as `statecast import` writes them, as far as the checks need them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecast_domains.directories import DOMAIN_FILE
from statecast_onboarding.connector_file import read_connector
from statecast_onboarding.errors import OnboardingError
from statecast_service.topic_names import is_topic_name
from statecast_service.yaml_files import read_yaml


@dataclass(frozen=True)
class TeamFiles:
    """What a directory says; each part is empty where its file is missing."""

    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The entries of the topics file, by topic."""
    stores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The entries of the query service's stores file, by topic."""
    sources: frozenset[str] = frozenset()
    """The topics that pipelines read."""
    sinks: frozenset[str] = frozenset()
    """The keyed topics, which pipelines write."""
    connector: Mapping[str, str] = field(default_factory=dict)
    """The connector's configuration as it was written, not as it runs."""


def read_files(directory: Path) -> TeamFiles:
    """Raises OnboardingError for a directory that is none, and for a file that cannot be read."""
    if not directory.is_dir():
        raise OnboardingError(f"{directory} is no directory: --files takes what `statecast import` has written")
    connector = read_connector(directory / "connector.json")
    files = [path for path in sorted((directory / "pipelines").glob("*.yaml")) if path.name != DOMAIN_FILE]
    pipelines = {path: _mapping(path) for path in files}
    routes = {path for path, pipeline in pipelines.items() if _is_route(pipeline.get("keep"))}
    return TeamFiles(
        topics=_entries(directory / "topics.yaml", "topics", "name"),
        stores=_entries(directory / "query-stores.yaml", "stores", "topic"),
        sources=frozenset(_topic(path, pipeline, "source") for path, pipeline in pipelines.items()),
        sinks=frozenset(_topic(path, pipelines[path], "sink") for path in pipelines.keys() - routes),
        connector=connector.settings if connector else {},
    )


def _is_route(keep: object) -> bool:
    return keep == "route" or (isinstance(keep, dict) and "route" in keep)


def _topic(path: Path, pipeline: Mapping[str, Any], section: str) -> str:
    content = pipeline.get(section)
    if not isinstance(content, dict) or not isinstance(content.get("topic"), str):
        raise OnboardingError(f"{path}: {section} must be keys and values, with a topic")
    topic: str = content["topic"]
    return topic


def _mapping(path: Path) -> Mapping[str, Any]:
    try:
        content = read_yaml(path)
    except ValueError as error:
        raise OnboardingError(f"{path} {error}") from error
    if not isinstance(content, dict):
        raise OnboardingError(f"{path}: its top level must be keys and values")
    return content


def _entries(path: Path, key: str, topic: str) -> dict[str, Mapping[str, Any]]:
    """The entries of the list `key` by their topic, which stands under `topic`. Raises OnboardingError."""
    if not path.exists():
        return {}
    entries = _mapping(path).get(key)
    if not isinstance(entries, list):
        raise OnboardingError(f"{path}: {key} must be a list")
    for index, entry in enumerate(entries):
        if problem := _entry_problem(entry, topic):
            raise OnboardingError(f"{path}: {key}[{index}]{problem}")
    return {entry[topic]: entry for entry in entries}


def _entry_problem(entry: object, topic: str) -> str | None:
    """What is wrong with an entry of topics or stores, as far as the checks read it."""
    if not isinstance(entry, dict):
        return " must be keys and values"
    name, partitions = entry.get(topic), entry.get("partitions")
    if not isinstance(name, str) or not is_topic_name(name):
        return f".{topic} must be the name of a topic: 1 to 249 letters, digits, dots, _ and -"
    if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int)):
        return ".partitions must be a whole number"
    for key in ("format", "partitioner"):
        if not isinstance(entry.get(key, ""), str):
            return f".{key} must be a text"
    return _access_problem(entry.get("access"))


def _access_problem(access: object) -> str | None:
    if access is None:
        return None
    if not isinstance(access, dict):
        return ".access must be a mapping of services to lists of operations"
    for service, operations in access.items():
        if not isinstance(operations, list) or not all(isinstance(each, str) for each in operations):
            return f".access.{service} must be a list of operations"
    return None
