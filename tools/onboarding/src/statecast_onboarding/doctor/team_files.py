"""The files of a team, as `statecast import` writes them, as far as the checks need them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecast_domains.derivation import derive
from statecast_domains.domain import read_domains
from statecast_onboarding.connector_file import CONNECTOR, read_connector
from statecast_onboarding.domain_directory import PIPELINES
from statecast_onboarding.errors import OnboardingError


@dataclass(frozen=True)
class TeamFiles:
    """The entries of the files in a directory; each part is empty where its file is missing."""

    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The entries of the topics file, by topic."""
    stores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The entries of the query service's stores file, by topic."""
    sources: frozenset[str] = frozenset()
    """The topics that pipelines read."""
    tables: frozenset[str] = frozenset()
    """Those among them that others write and pipelines read as tables: a record is the row of its key."""
    sinks: frozenset[str] = frozenset()
    """The keyed topics, which pipelines write."""
    connector: Mapping[str, str] = field(default_factory=dict)
    """The connector's configuration as it was written, not as it runs."""


def read_files(directory: Path) -> TeamFiles:
    """Raises OnboardingError for a directory that is none, and DomainFileError for a file of its domain."""
    if not directory.is_dir():
        raise OnboardingError(f"{directory} is not a directory: --files takes what `statecast import` has written")
    connector = read_connector(directory / CONNECTOR)
    settings = connector.settings if connector else {}
    if not (directory / PIPELINES).exists():
        return TeamFiles(connector=settings)
    domains = read_domains([directory / PIPELINES])
    derivation = derive(domains)
    pipelines = [pipeline for domain in domains for pipeline in domain.pipelines.values()]
    read = [source for each in pipelines for source in each.sources.values()]
    sinks = frozenset(each.sink.topic for each in pipelines if each.keep.shape != "route")
    return TeamFiles(
        topics={topic.name: topic.entry for topic in derivation.topics},
        stores={store.topic: store.entry for store in derivation.stores},
        sources=frozenset(source.topic for source in read),
        tables=frozenset(source.topic for source in read if source.table in ("protobuf", "json")) - sinks,
        sinks=sinks,
        connector=settings,
    )
