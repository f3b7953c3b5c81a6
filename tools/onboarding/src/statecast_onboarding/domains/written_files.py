"""The files that services read: made of domains, compared with those written before, and written as a whole."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

from statecast_domains.derivation import Derivation
from statecast_domains.derived_files import stores_text, topics_text
from statecast_domains.domain import Domain
from statecast_onboarding.domains.difference import Difference, Entry, of_entries
from statecast_onboarding.errors import OnboardingError
from statecast_service.yaml_files import read_yaml

TOPICS, STORES = "topics.yaml", "stores.yaml"
CONFIGMAPS = "configmaps.yaml"


def texts(derivation: Derivation) -> dict[str, str]:
    """Returns the derived files by name."""
    return {TOPICS: topics_text(derivation), STORES: stores_text(derivation)}


def configmaps(domains: Sequence[Domain], derived: Mapping[str, str]) -> str:
    """Returns two ConfigMaps for Kubernetes: `pipelines` with a file for each, and `stores` with the stores file."""
    pipelines = {
        f"{pipeline.name}.yaml": file.read_text(encoding="utf-8")
        for domain in domains
        for file, pipeline in domain.pipelines.items()
    }
    return yaml.safe_dump_all(
        [_configmap("pipelines", pipelines), _configmap("stores", {STORES: derived[STORES]})],
        sort_keys=False,
        allow_unicode=True,
    )


def _configmap(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}


def of_files(out: Path, files: Mapping[str, str]) -> Iterator[Difference]:
    """Yields how the derived files differ from those of the directory.

    Raises OnboardingError for one that was spoilt.
    """
    for name, text in files.items():
        [entries] = yaml.safe_load(text).values()
        yield from of_entries(str(out / name), _former(out / name), entries)


def _former(file: Path) -> Sequence[Entry] | None:
    if not file.exists():
        return None
    try:
        [entries] = read_yaml(file).values()
        names = [entry["name"] for entry in entries]
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{file} is no list of entries with names: remove it, or take another --out"
        raise OnboardingError(problem) from error
    return list(entries) if names else []


def write(out: Path, files: Mapping[str, str]) -> list[Path]:
    """Writes each file at once, so that a service that watches it never sees a part. Raises OnboardingError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _replace(out / name, text)
    except OSError as error:
        raise OnboardingError(f"{error.filename or out} cannot be written: {error.strerror}") from error
    return [out / name for name in files]


def _replace(path: Path, text: str) -> None:
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary = Path(file.name)
    temporary.chmod(0o644)
    temporary.replace(path)
