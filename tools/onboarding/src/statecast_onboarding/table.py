"""A table as all sources describe it: its columns as fields of a message, its key, and the columns left out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from statecast_onboarding.errors import OnboardingError
from statecast_service.settings import suggest

TIMESTAMP = "google.protobuf.Timestamp"
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
INTEGERS = ("int32", "int64")
DATE = "An RFC 3339 full-date, for example `2024-08-28`."
TIME = "A time of day, for example `10:00:00`."
TIME_IN_UTC = "A time of day in UTC, for example `10:00:00Z`."
INTERVAL = "An ISO 8601 duration, for example `P1Y2M3DT4H5M6S`."
JSON = "JSON."
DIGITS = "Digits, exactly; to SQL a text, because"
MAX_PRECISION = 38
"""The digits that the option statecast.change.v1.decimal takes."""
_LABEL = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class Decimal:
    """How many digits the numbers of a text have at most, and how many of them are behind the point."""

    precision: int
    scale: int


@dataclass(frozen=True)
class Column:
    """One column. `type` is a scalar of Protobuf, TIMESTAMP, `enum` (with `labels`) or `message` (with `fields`).

    A `string` with `decimal` is a number to SQL.

    `note` is a comment for the reader of the field.
    """

    name: str
    type: str
    nullable: bool = True
    repeated: bool = False
    note: str = ""
    labels: tuple[str, ...] = ()
    fields: tuple["Column", ...] = ()
    decimal: Decimal | None = None


@dataclass(frozen=True)
class Table:
    """A table, or another source of changes. `topic` is where its changes are, `left_out` why columns are missing."""

    name: str
    topic: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    replica_identity: str = ""
    """PostgreSQL's word, `default`, `full`, `index` or `nothing`; empty where it is not known."""
    sql_name: str = ""
    """Schema and table as SQL takes them; empty where it is not known."""
    partitioned: bool = False
    """Whether its rows are those of partitions."""

    @property
    def slug(self) -> str:
        """The name in files, stores and topics."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "table"

    def column(self, name: str) -> Column:
        """Raises OnboardingError with the nearest name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise OnboardingError(
            f"{self.name} has no column {name!r}; {suggest(name, [each.name for each in self.columns])}"
        )

    def with_owner(self, name: str) -> "Table":
        """Returns the table with `name` as a text, like a consumer's id. Raises OnboardingError if it cannot be one."""
        owner = self.column(name)
        if owner.repeated or owner.type not in ("string", *INTEGERS):
            type_ = f"repeated {owner.type}" if owner.repeated else owner.type
            raise OnboardingError(
                f"the column {name} cannot be the owner: it is of type {type_}, and a consumer's id is a text or digits"
            )
        if owner.type in INTEGERS:
            note = f"{owner.note} Digits as text, because the edge compares them with the consumer's id.".strip()
            owner = replace(owner, type="string", note=note)
        return replace(self, columns=tuple(owner if each.name == name else each for each in self.columns))


def camel_case(name: str) -> str:
    """Writes `order_lines` as `OrderLines`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name) if part)


def enum_column(column: Column, labels: Iterable[str]) -> Column:
    """Returns the column as an enum; as text if its labels are no names in Protobuf, or differ only in case and `_`."""
    texts = tuple(labels)
    different = {text.upper().replace("_", "") for text in texts}
    if all(_LABEL.fullmatch(text) for text in texts) and len(different) == len(texts) > 0:
        return replace(column, type="enum", labels=texts)
    return replace(column, type="string", note=f"One of: {', '.join(texts)}.")


def array_column(column: Column, element: Column) -> Column:
    """Returns the column as an array; as JSON if its elements are arrays or JSON: no repeated field takes these."""
    if element.repeated or element.note.endswith(JSON):
        return json_column(column)
    note = column.note or element.note
    return replace(element, name=column.name, nullable=column.nullable, repeated=True, note=note)


def decimal_column(column: Column, precision: int, scale: int) -> Column:
    """Returns the column as a text of numbers with that many digits, `scale` of them behind the point.

    A scale may be negative, or above the precision, as PostgreSQL has it. Digits beyond MAX_PRECISION make it a text
    that SQL does not know for a number; the note says so.
    """
    behind = max(scale, 0)
    decimal = Decimal(max(precision - scale, 0) + behind, behind)
    if not 1 <= decimal.precision <= MAX_PRECISION:
        return digits_column(column, f"it has more than {MAX_PRECISION}.")
    return replace(column, type="string", decimal=decimal)


def digits_column(column: Column, reason: str) -> Column:
    """Returns the column as a text of any digits; `reason` says why it is no decimal."""
    return replace(column, type="string", note=f"{column.note} {DIGITS} {reason}".strip())


def json_column(column: Column) -> Column:
    """Returns the column as a text, which takes an array or an object as JSON."""
    return Column(column.name, "string", column.nullable, note=f"{column.note} {JSON}".strip())


def usable(columns: Iterable[Column], key: tuple[str, ...]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Returns the columns that can be fields, and why others are left out. Raises OnboardingError for one of the key.

    An object that cannot be a message, because it is empty or has a name that cannot be a field's, becomes JSON.
    """
    kept: list[Column] = []
    left_out = []
    for column in columns:
        problem = _problem(column.name, [*key, *(each.name for each in kept)])
        if problem is None:
            kept.append(_without_wrong_messages(column))
        elif column.name in key:
            raise OnboardingError(f"the key's column {column.name!r} cannot be a field: {problem}")
        else:
            left_out.append(f"{column.name}: {problem}")
    return tuple(kept), tuple(left_out)


def _without_wrong_messages(column: Column) -> Column:
    if column.type != "message":
        return column
    names = [field.name for field in column.fields]
    if not names or any(_problem(name, names) for name in names):
        return json_column(column)
    return replace(column, fields=tuple(map(_without_wrong_messages, column.fields)))


def _problem(name: str, others: Sequence[str]) -> str | None:
    """Returns why the name cannot be that of a field beside others."""
    if not IDENTIFIER.fullmatch(name):
        return "a field begins with a letter and has letters, digits and _"
    for other in others:
        # Spark does not tell names apart by case, and JSON leaves `_` out.
        if other != name and (other.lower() == name.lower() or _json_name(other) == _json_name(name)):
            return f"it differs from {other} in case or _ only"
    return None


def _json_name(name: str) -> str:
    return re.sub(r"_+([^_]?)", lambda match: match[1].upper(), name)
