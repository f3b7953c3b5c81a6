"""A connector's file: its settings alone, or within `{"name": …, "config": {…}}`, as Connect's REST API has it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecast_onboarding.errors import OnboardingError

TABLES = "table.include.list"
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True)
class ConnectorFile:
    """What a file holds. Its settings stay as they were written, numbers and null included."""

    config: Mapping[str, Any]
    beside: Mapping[str, Any] | None = None
    """What stands around `config`, the connector's name above all; None where the file is the settings alone."""

    @property
    def settings(self) -> dict[str, str]:
        return settings_of(self.config)

    def text_with(self, config: Mapping[str, Any]) -> str:
        """The file with other settings, in the form that it has."""
        return json.dumps(config if self.beside is None else {**self.beside, "config": config}, indent=2) + "\n"


def read_connector(path: Path) -> ConnectorFile | None:
    """The file; None when it is missing. Raises OnboardingError that names the file and the key."""
    if not path.exists():
        return None
    content = read_json(path)
    if not isinstance(content, dict):
        raise OnboardingError(f"{path}: it must be a JSON object, the connector's settings")
    nested = "config" in content
    config = content["config"] if nested else content
    if not isinstance(config, dict):
        raise OnboardingError(f"{path}: config must be a JSON object, the connector's settings")
    try:
        settings_of(config)
    except ValueError as error:
        raise OnboardingError(f"{path}: {'config.' if nested else ''}{error}") from error
    return ConnectorFile(config, content if nested else None)


def settings_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The settings as Connect reads them: as texts, and without null. Raises ValueError for an object or an array."""
    for name, value in config.items():
        if isinstance(value, (dict, list)):
            raise ValueError(f"{name} must be a text, a number, true or false")  # noqa: TRY004  the file is wrong
    return {name: _text(value) for name, value in config.items() if value is not None}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def include_entries(settings: Mapping[str, str]) -> list[str]:
    """The entries of the list of tables, each a regular expression."""
    return [entry for each in _COMMA.split(settings.get(TABLES, "")) if (entry := each.strip())]


def include_entry(table: str) -> str:
    """The entry of a table, as schema.table. A dot stays: it fits itself, and people read it."""
    return re.sub(r"[^\w\s.-]", r"\\\g<0>", table)


def read_json(path: Path) -> Any:
    """What a file holds. Raises OnboardingError when it cannot be read, or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OnboardingError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise OnboardingError(f"{path} is not JSON: {error}") from error
