"""A table as all sources describe it: its columns as fields of a message, its key, and what was left out."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from statecast_onboarding.errors import OnboardingError
from statecast_service.settings import suggest

TIMESTAMP = "google.protobuf.Timestamp"
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
INTEGERS = ("int32", "int64")
_LABEL = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class Column:
    """One column. `type` is a scalar of Protobuf, TIMESTAMP, `enum` (with `labels`) or `message` (with `fields`).

    `note` is what somebody who reads the field should know, as a comment.
    """

    name: str
    type: str
    nullable: bool = True
    repeated: bool = False
    note: str = ""
    labels: tuple[str, ...] = ()
    fields: tuple["Column", ...] = ()


@dataclass(frozen=True)
class Table:
    """A table, or what else sends changes. `topic` is where its changes are, `left_out` why columns are missing."""

    name: str
    topic: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    replica_identity: str = ""
    """PostgreSQL's word, `default`, `full`, `index` or `nothing`; empty where it is not known."""

    @property
    def slug(self) -> str:
        """The name in files, stores and topics."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    def column(self, name: str) -> Column:
        """Raises OnboardingError with the nearest name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise OnboardingError(
            f"{self.name} has no column {name!r}; {suggest(name, [each.name for each in self.columns])}"
        )


def camel_case(name: str) -> str:
    """`order_lines` as `OrderLines`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name) if part)


def enum_column(column: Column, labels: Iterable[str]) -> Column:
    """The column as an enum; as a text when its labels cannot be names in Protobuf, or differ in their case only."""
    texts = tuple(labels)
    if all(_LABEL.fullmatch(text) for text in texts) and len({text.upper() for text in texts}) == len(texts) > 0:
        return replace(column, type="enum", labels=texts)
    return replace(column, type="string", note=f"One of: {', '.join(texts)}.")


def usable(columns: Iterable[Column], key: tuple[str, ...]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns whose names can be fields, and why others are left out. Raises OnboardingError for one of the key."""
    kept, left_out = [], []
    for column in columns:
        if IDENTIFIER.fullmatch(column.name):
            kept.append(column)
        elif column.name in key:
            raise OnboardingError(
                f"the key's column {column.name!r} cannot be a field: a field has letters, digits and _"
            )
        else:
            left_out.append(f"{column.name}: a field has letters, digits and _")
    return tuple(kept), tuple(left_out)
