"""Reads the gateway's file, and names the place of what is not carried over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kong_envoy.environment import Environment
from kong_envoy.errors import UnreadableError, UnsupportedError
from kong_envoy.models import Context, KongFile


def load(file: Path) -> dict[str, Any]:
    """The document of the file. Raises UnreadableError when it is missing or is not a YAML mapping."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableError(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UnreadableError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UnreadableError(f"{file} must hold a mapping in Kong's declarative format")
    return document


def read_document(document: Mapping[str, Any], environment: Environment, *, tls: bool) -> KongFile:
    """Reads the document; the certificate only for `tls`. Raises a KongEnvoyError naming the first thing wrong."""
    try:
        return KongFile.model_validate(dict(document), context=Context(environment, tls))
    except ValidationError as error:
        raise _unsupported(error) from error


def _unsupported(error: ValidationError) -> UnsupportedError:
    """Names the place as the file has it, for example `services[0].plugins[1](jwt).config`; unknown fields first."""
    first = min(error.errors(include_url=False), key=lambda wrong: wrong["type"] != "extra_forbidden")
    place, parts = "", list(first["loc"])
    for index, part in enumerate(parts):
        if isinstance(part, int):
            place += f"[{part}]"
        elif index > 1 and parts[index - 2] == "plugins":
            place += f"({part})"  # what pydantic tells the plugins apart by
        else:
            place += f".{part}"
    why = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        why = "is not carried over to Envoy"
    elif first["type"] == "missing":
        why = "must be given"
    elif not isinstance(first["input"], dict):
        why += f", not {first['input']!r}"
    return UnsupportedError(f"{place.removeprefix('.') or 'kong.yaml'}: {why}")
