"""Reads a file of sections, explains its errors, and makes the JSON Schema by which editors check it."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from statecast_domains.errors import DomainFileError
from statecast_domains.sections import OwnerSection, Section
from statecast_domains.values import human
from statecast_service.settings import suggest
from statecast_service.yaml_files import read_yaml

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
File = TypeVar("File", bound=Section)


def read_sections(file: Path, form: type[File], wrong: type[DomainFileError], what: str) -> File:
    """Returns the file's content. Raises `wrong` naming the file, the key and the nearest valid name."""
    try:
        content = read_yaml(file)
    except ValueError as error:
        raise wrong(str(file), "", str(error)) from error
    if not isinstance(content, dict):
        raise wrong(str(file), "", f"is not {what}: its top level must be keys and values")
    try:
        return form.model_validate(content)
    except ValidationError as error:
        raise wrong(str(file), *_explain(min(error.errors(), key=_order))) from error


def _order(error: ErrorDetails) -> tuple[bool, bool]:
    # A key that is missing is most often one that was misspelt. Owners are keys, so no text was meant.
    return error["type"] != "unknown_key", error["type"] == "literal_error"


def _explain(error: ErrorDetails) -> tuple[str, str]:
    context = error.get("ctx", {})
    parts = *error["loc"], *([context["key"]] if "key" in context else [])
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts if part != OwnerSection.__name__)
    key = "".join(steps).removeprefix(".")
    match error["type"]:
        case "unknown_key":
            return key, context["problem"]
        case "missing":
            return key, "is missing"
        case "literal_error":
            valid = [name.strip("'") for name in context["expected"].replace(" or ", ", ").split(", ")]
            return key, f"{error['input']!r} is not supported; {suggest(str(error['input']), valid)}"
    shown = error["input"] if not isinstance(error["input"], timedelta) else human(error["input"])
    return key, f"{error['msg'].removeprefix('Value error, ')} (it is {shown!r})"


def schema_of(form: type[Section], title: str) -> str:
    """Returns the JSON Schema of such files."""
    schema = {key: _plain(value) for key, value in form.model_json_schema().items()}
    return json.dumps({"$schema": SCHEMA_DIALECT, **schema, "title": title}, indent=2) + "\n"


def _plain(node: Any) -> Any:
    """Removes pydantic's additions that no person would write: titles, and null as the value of an omitted key."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    if {"type": "null"} not in kept.get("anyOf", []):
        return kept
    options = [each for each in kept.pop("anyOf") if each != {"type": "null"}]
    del kept["default"]
    return {**(options[0] if len(options) == 1 else {"anyOf": options}), **kept}
