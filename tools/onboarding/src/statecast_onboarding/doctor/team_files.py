"""The files of a team, as `statecast import` writes them, as far as the checks need them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecast_onboarding.errors import OnboardingError
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
    pipelines = {path: _mapping(path) for path in sorted((directory / "pipelines").glob("*.yaml"))}
    routes = {path for path, pipeline in pipelines.items() if _is_route(pipeline.get("keep"))}
    return TeamFiles(
        topics=_entries(directory / "topics.yaml", "topics", "name"),
        stores=_entries(directory / "query-stores.yaml", "stores", "topic"),
        sources=frozenset(_topic(path, pipeline, "source") for path, pipeline in pipelines.items()),
        sinks=frozenset(_topic(path, pipelines[path], "sink") for path in pipelines.keys() - routes),
        connector=_connector(directory / "connector.json"),
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


def _entries(path: Path, key: str, name: str) -> dict[str, Mapping[str, Any]]:
    if not path.exists():
        return {}
    entries = _mapping(path).get(key)
    if not isinstance(entries, list) or not all(isinstance(each, dict) and name in each for each in entries):
        raise OnboardingError(f"{path}: {key} must be a list of mappings with {name}")
    return {str(each[name]): each for each in entries}


def _connector(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OnboardingError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise OnboardingError(f"{path} is not JSON: {error}") from error
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise OnboardingError(f"{path} is no configuration of a connector")
    return {str(name): str(value) for name, value in config.items()}
