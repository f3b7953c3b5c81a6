"""Files of topics and of stores: lists of entries with names, to which others are added while edits stay."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from statecast_onboarding.errors import OnboardingError


def with_entries(path: Path, head: str, entries: Mapping[str, str]) -> str:
    """The text of the file as it is, or its head, and those entries whose name it does not have.

    Raises OnboardingError for a file that cannot be added to.
    """
    text = _text(path) if path.exists() else head
    known = _entries(text)
    if known is None:
        raise OnboardingError(f"{path} is no list of entries with names any more: correct it, or take another --out")
    names = [name for name, _ in known]
    new = {name: entry for name, entry in entries.items() if name not in names}
    whole = text + ("" if text.endswith("\n") else "\n") + "".join(new.values())
    if [name for name, _ in _entries(whole) or ()] != [*names, *new]:
        raise OnboardingError(
            f"{path} cannot be added to: give each entry lines of its own, and two blanks before its -"
        )
    return whole


def entry_of(path: Path, name: str) -> Mapping[str, Any]:
    """The entry of a file; an empty one when it or the file is missing, or when the file is no list of entries."""
    entries = _entries(_text(path)) if path.exists() else None
    return next((entry for each, entry in entries or () if each == name), {})


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OnboardingError(f"{path} is no text in UTF-8 any more: {error}") from error


def _entries(text: str) -> list[tuple[str, Mapping[str, Any]]] | None:
    """The entries of a file with their names; None when it is no such file."""
    try:
        content = yaml.safe_load(text)
        # A domain's file has more than its topics.
        [entries] = [content["topics"]] if "topics" in content else content.values()
        return [(entry["name"], entry) for entry in entries or ()]
    except (yaml.YAMLError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
