"""Checks a mapping of the file against a table of the fields that are carried over, and fills in Kong's defaults.

A table maps a field's name to `required(rule)` or `optional(rule, default)`. A rule returns nothing for a value that
is carried over exactly, and the reason for any other. What stands in no table is refused, so nothing is dropped
silently.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kong_envoy.errors import UnsupportedError

Rule = Callable[[object], str | None]


@dataclass(frozen=True)
class Field:
    """One field of a table: what it may hold, and Kong's default where it may be left out."""

    rule: Rule
    is_required: bool
    default: Any = None


Table = Mapping[str, Field]


def required(rule: Rule) -> Field:
    """A field that must be given, because it has no default or its default would not be carried over."""
    return Field(rule, is_required=True)


def optional(rule: Rule, default: object = None) -> Field:
    """A field that may be left out; `default` is Kong's."""
    return Field(rule, is_required=False, default=default)


def check(where: str, given: object, table: Table) -> dict[str, Any]:
    """The values of `given`, with defaults for those left out. Raises UnsupportedError naming the first bad field."""
    if not isinstance(given, dict):
        raise UnsupportedError(where, f"must be a mapping, not {given!r}")
    for name, value in given.items():
        if name not in table:
            raise UnsupportedError(f"{where}.{name}", f"is not carried over to Envoy; known here: {', '.join(table)}")
        if why := table[name].rule(value):
            raise UnsupportedError(f"{where}.{name}", f"{why}, not {value!r}")
    for name, field in table.items():
        if field.is_required and name not in given:
            raise UnsupportedError(f"{where}.{name}", "must be given")
    return {name: given.get(name, field.default) for name, field in table.items()}


def entries(where: str, given: object) -> list[tuple[str, Any]]:
    """The entries of a list, each with where it stands. Raises UnsupportedError when it is no list."""
    if not isinstance(given, list):
        raise UnsupportedError(where, f"must be a list, not {given!r}")
    return [(f"{where}[{index}]", entry) for index, entry in enumerate(given)]


def text(value: object) -> str | None:
    """Any text but the empty one."""
    return None if isinstance(value, str) and value else "must be a text"


def texts(value: object) -> str | None:
    """A list of texts."""
    return None if isinstance(value, list) and not any(text(each) for each in value) else "must be a list of texts"


def flag(value: object) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "must be true or false"


def whole(least: int, most: int = 2**31 - 2) -> Rule:
    """A whole number within bounds, both inclusive."""

    def rule(value: object) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"must be a whole number from {least} to {most}"

    return rule


def only(*allowed: object) -> Rule:
    """One of a few values; lists stand for sets."""

    def rule(value: object) -> str | None:
        fits = any(_same(value, each) for each in allowed)
        return None if fits else f"only {' or '.join(repr(each) for each in allowed)} is carried over"

    return rule


def nested(value: object) -> str | None:
    """A mapping or a list that the caller checks with a table of its own."""
    return None if isinstance(value, dict | list) else "must be a mapping or a list"


def _same(value: object, allowed: object) -> bool:
    if isinstance(value, list) and isinstance(allowed, list):
        return sorted(map(repr, value)) == sorted(map(repr, allowed))
    return type(value) is type(allowed) and value == allowed
