"""The domain that an import writes to: a directory of pipelines, and `domain.yaml` with the topics that they read."""

from pathlib import Path
from typing import Any

import yaml

from statecast_domains.derivation import derive
from statecast_domains.directories import DOMAIN_FILE
from statecast_domains.domain import read_domains
from statecast_domains.domain_file import read_domain_file
from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.pipeline_files import in_yaml

PIPELINES = "pipelines"
"""Where pipelines and `domain.yaml` are: with it that directory is a domain."""


def former_prefix(directory: Path) -> str | None:
    """Returns the topic prefix of an existing domain; None where there is no domain.

    Raises DomainFileError for a `domain.yaml` that is wrong.
    """
    file = directory / DOMAIN_FILE
    return read_domain_file(file).topic_prefix if file.exists() else None


def domain_text(directory: Path, prefix: str, topic: str, partitions: int) -> str:
    """Returns `domain.yaml` with the topic: a new one, or the one that is there, of which every line stays.

    Raises DomainFileError for one that is wrong, and OnboardingError for one that has no place for the topic, and for a
    topic outside the prefix.
    """
    if not topic.startswith(prefix):
        text = f"the topic {topic} does not begin with {prefix}, and neither would that of its dead letters"
        raise OnboardingError(f"{text}: correct the --topic-prefix, or the --topic, or the --kafka-prefix")
    file = directory / DOMAIN_FILE
    entry = f"{{name: {in_yaml(topic)}, partitions: {partitions}, writers: [debezium]}}"
    if not file.exists():
        return f"{_head(prefix)}topics:\n  - {entry}\n"
    declared = read_domain_file(file).topics
    text = file.read_text(encoding="utf-8")
    if topic in [each.name for each in declared]:
        return text
    added = _with_entry(text, entry)
    if not _is_added(text, added, entry):
        raise OnboardingError(f"{file}: topics: there is no place for another one: add the line `- {entry}` to it")
    return added


def check_domain(directory: Path) -> None:
    """Derives topics and stores, as `statecast apply` does. Raises DomainFileError with the file and the key."""
    derive(read_domains([directory]))


def _head(prefix: str) -> str:
    own = f"topic_prefix: {in_yaml(prefix)}\n" if prefix else ""
    return f"# What the pipelines beside it read: topics that others write.\ndescription: Imported tables.\n{own}"


def _with_entry(text: str, entry: str) -> str:
    """Returns the text with the entry at the end of its topics, in the style that the list has."""
    root: Any = yaml.compose(text, yaml.SafeLoader)  # keys and values, since it has been read as a domain
    topics = next((value for key, value in root.value if key.value == "topics"), None)
    if topics is None:
        return f"{text}{'' if text.endswith(chr(10)) else chr(10)}topics:\n  - {entry}\n"
    if not topics.value:  # []
        at = topics.end_mark.index - 1
        return f"{text[:at]}{entry}{text[at:]}"
    at = _end(topics.value[-1])
    if topics.flow_style:
        return f"{text[:at]}, {entry}{text[at:]}"
    at += len(text[at:].partition("\n")[0])
    return f"{text[:at]}\n{' ' * topics.start_mark.column}- {entry}{text[at:]}"


def _end(node: yaml.Node) -> int:
    """Returns the index where a node's text ends. YAML lets a block collection end where the next node begins."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _is_added(text: str, added: str, entry: str) -> bool:
    """Returns whether YAML reads the text as before, with one more topic."""
    before = yaml.safe_load(text)
    try:
        return bool(yaml.safe_load(added) == before | {"topics": [*before.get("topics", []), yaml.safe_load(entry)]})
    except yaml.YAMLError:
        return False
