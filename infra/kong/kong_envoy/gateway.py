"""Reads the gateway's file, and names the place of anything that cannot be carried over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kong_envoy.environment import Environment
from kong_envoy.errors import KongEnvoyError, UnsupportedError
from kong_envoy.models import KongFile


def load(file: Path) -> dict[str, Any]:
    """Returns the document of the file. Raises KongEnvoyError when it is missing or is not a YAML mapping."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise KongEnvoyError(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise KongEnvoyError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise KongEnvoyError(f"{file} must hold a mapping in Kong's declarative format")
    return document


def read_document(document: Mapping[str, Any], environment: Environment) -> KongFile:
    """Reads the document. Raises UnsupportedError naming the first thing wrong."""
    try:
        return KongFile.model_validate(dict(document), context=environment)
    except ValidationError as error:
        raise _unsupported(error) from error


def _unsupported(error: ValidationError) -> UnsupportedError:
    """Names the place as the file has it, for example `services[0].plugins[1](jwt).config`; unknown fields first."""
    first = min(error.errors(include_url=False), key=lambda wrong: wrong["type"] != "extra_forbidden")
    place, parts = "", first["loc"]
    for index, part in enumerate(parts):
        of_plugin = index > 1 and parts[index - 2] == "plugins"  # then the part is pydantic's tag of the plugin
        place += f"[{part}]" if isinstance(part, int) else f"({part})" if of_plugin else f".{part}"
    why = first["msg"].removeprefix("Value error, ")
    if not isinstance(first["input"], dict):
        why += f", not {first['input']!r}"
    why = {"extra_forbidden": "is not carried over to Envoy", "missing": "must be given"}.get(first["type"], why)
    return UnsupportedError(f"{place.removeprefix('.') or 'kong.yaml'}: {why}")
