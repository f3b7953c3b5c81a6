"""The pipelines of a table, one for each shape that was asked for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from statecast_onboarding.errors import OnboardingError
from statecast_onboarding.message_file import aggregate_name, message_name, summed
from statecast_onboarding.table import INTEGERS, TIMESTAMP, Column, Table

SHAPES = ("latest", "members", "aggregate")
GROUPED = ("members", "aggregate")
KEY_TYPES = ("string", "bool", "enum", *INTEGERS)
SORT_TYPES = (TIMESTAMP, "string", *INTEGERS)
MAX_NAME = 63
"""How many characters the stream-processor takes in the name of a pipeline."""
_CHANGED_AT = ("updated_at", "modified_at", "changed_at", "updated", "last_modified", "created_at", "created")

_YAML_WORDS = ("true", "false", "yes", "no", "on", "off", "y", "n", "null")


@dataclass(frozen=True)
class Keyed:
    """A pipeline, which fills the keyed topic and the store of its name."""

    name: str
    shape: str
    text: str
    """The pipeline's file."""


@dataclass(frozen=True)
class Choice:
    """The options for a table: shapes, the column that groups, and the one that orders a group's members.

    `prefix` begins the names of topics, `owner` is the column of the consumer's id. Without an owner, staff alone see
    the rows.
    """

    shapes: tuple[str, ...]
    group: str | None
    sort: str | None
    prefix: str = ""
    owner: str | None = None
    partitions: int = 4


def pipelines(table: Table, package: str, choice: Choice) -> list[Keyed]:
    """Returns the pipelines. Raises OnboardingError when the table or the choice lacks something that a shape needs."""
    if not table.key:
        raise OnboardingError(
            f"{table.name} has no primary key: add one to the table, as changes cannot be told apart without it"
        )
    for name in table.key:
        _check(table.column(name), KEY_TYPES, "of a key")
    keyed = [_pipeline(shape, table, package, choice) for shape in choice.shapes]
    names = [each.name for each in keyed]
    if len(set(names)) < len(names):
        same = ", ".join(each.shape for each in keyed if names.count(each.name) > 1)
        raise OnboardingError(f"{same} with --group {choice.group} would have one name: import them into two --out")
    _check_length(table, max(names, key=len), choice.group)
    return keyed


def _check_length(table: Table, name: str, group: str | None) -> None:
    if len(name) <= MAX_NAME:
        return
    room = MAX_NAME - len(name.removeprefix(table.slug))
    todo = f"take a --name of at most {room}"
    if room < 1:
        todo = f"--group {group} leaves no room for a --name; take a column with a shorter name"
    raise OnboardingError(
        f"the pipeline's name {name} has {len(name)} characters, and may have at most {MAX_NAME}: {todo}"
    )


def group_of(table: Table, choice: Choice) -> Column | None:
    """Returns the column that groups.

    Raises OnboardingError when a shape needs one, and for one that cannot be a key.
    """
    if choice.group is None:
        if missing := [shape for shape in choice.shapes if shape in GROUPED]:
            raise OnboardingError(f"--group is missing: {missing[0]} keeps something for each value of a column")
        return None
    return _check(table.column(choice.group), KEY_TYPES, "of a key")


def _pipeline(shape: str, table: Table, package: str, choice: Choice) -> Keyed:
    row, group = f"{package}.{message_name(table)}", group_of(table, choice)
    key = _paths(table.key)
    source = f"source: {{topic: {in_yaml(table.topic)}, message: {row}Change, format: debezium-json, key: {key}}}"
    if shape == "latest" or group is None:
        name, about = f"{table.slug}-by-key", "The newest row of each key."
        keep = [f"group_by: {key}", "keep: latest", _sink(choice, name)]
    elif shape == "members":
        name, sort = f"{table.slug}-by-{_slug(group)}", _sort(table, choice)
        about = f"The rows of each {group.name}, in the order of {sort}."
        keep = [
            f"group_by: {in_yaml(group.name)}",
            f"keep: {{members: {{key: {key}, sort: {in_yaml(sort)}}}}}",
            _sink(choice, name),
        ]
    else:
        name, message = f"{table.slug}-summed-by-{_slug(group)}", f"{package}.{aggregate_name(table, group)}"
        about = f"What the rows of each {group.name} add up to."
        # In quotes of SQL, because a column may have the name of a keyword.
        sums = [f"    {in_yaml(column.name)}: sum(`{column.name}`)" for column in summed(table, group)]
        keep = [f"group_by: {in_yaml(group.name)}", "keep:", "  aggregate:", "    rows: count(*)", *sums]
        keep.append(_sink(choice, name, f", message: {message}"))
    keep.append(f"store: {{readers: {_readers(shape, choice.owner, choice.group)}}}")
    head = [f"# {about}", *_warnings(table), f"name: {in_yaml(name)}", source]
    more = ['# where: "…"                      # a SQL condition on the row: others leave', *keep]
    end = ["trigger: {mode: realtime, checkpoint: 60s}", "dead_letters: {limit: 1000}"]
    return Keyed(name, shape, "\n".join([*head, *more, *end]) + "\n")


def _sink(choice: Choice, name: str, more: str = "") -> str:
    return f"sink: {{topic: {in_yaml(choice.prefix + name)}, partitions: {choice.partitions}{more}}}"


def _readers(shape: str, owner: str | None, group: str | None) -> str:
    """Returns the readers of a shape's rows. An aggregate has no column but its group."""
    if owner is None or (shape == "aggregate" and owner != group):
        return "staff"
    return f"{{field: {in_yaml(owner)}{', group: true' if shape != 'latest' and owner == group else ''}}}"


def _warnings(table: Table) -> list[str]:
    return [*_partitions(table), *_replica_identity(table)]


def _partitions(table: Table) -> list[str]:
    if not table.partitioned:
        return []
    return [
        "# The table has partitions. DETACH, DROP and TRUNCATE of one are not in the log, and its rows stay here:",
        "#   DELETE them first.",
    ]


def _replica_identity(table: Table) -> list[str]:
    if table.replica_identity in ("", "full"):
        return []
    large = "updates that leave large values as they are"
    needed = "updates and deletes" if table.replica_identity == "nothing" else large
    of = "each of its partitions" if table.partitioned else table.sql_name
    return [
        f"# The table has REPLICA IDENTITY {table.replica_identity.upper()}; for {needed} it needs:",
        f"#   ALTER TABLE {of} REPLICA IDENTITY FULL;",
    ]


def _sort(table: Table, choice: Choice) -> str:
    if choice.sort is not None:
        return _check(table.column(choice.sort), SORT_TYPES, "to sort by").name
    times = {column.name for column in table.columns if column.type == TIMESTAMP and not column.nullable}
    likely = [name for name in _CHANGED_AT if name in times]
    fitting = [name for name in table.key if table.column(name).type in SORT_TYPES]
    if not likely and not fitting:
        raise OnboardingError(f"--sort is missing: {table.name} has no time that is never NULL to order its members by")
    return likely[0] if likely else fitting[0]


def _check(column: Column, types: Sequence[str], use: str) -> Column:
    if column.type not in types or column.repeated:
        raise OnboardingError(f"the column {column.name} is no column {use}: it is of type {column.type}")
    return column


def _paths(names: Sequence[str]) -> str:
    texts = [in_yaml(name) for name in names]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def in_yaml(name: str) -> str:
    """Writes a name of a topic or column as YAML reads it back: in quotes where it might be taken for another value."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name) and name.lower() not in _YAML_WORDS
    return name if plain else f'"{name}"'


def _slug(column: Column) -> str:
    return column.name.lower().removesuffix("_id").replace("_", "-")
