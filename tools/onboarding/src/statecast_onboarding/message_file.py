"""The `.proto` file of a table: the row, its change, and the message of an aggregate."""

import re
from collections.abc import Iterator, Mapping, Sequence

from statecast_onboarding.table import INTEGERS, MAX_PRECISION, TIMESTAMP, Column, Decimal, Table, camel_case

WIDTH = 116


def message_name(table: Table) -> str:
    """Returns the row's message, without its package."""
    name = camel_case(table.name)
    return name if name[:1].isalpha() else f"Table{name}"


def proto_file(table: Table, package: str, aggregate_by: Column | None) -> str:
    """Returns the file. With `aggregate_by` it has a message `…By<Group>`, which an aggregate of that column fills."""
    name = message_name(table)
    blocks = [
        f"// The rows of {table.topic}, as `statecast import` found them. Edit it: comments, types, columns.\n"
        "// A number that was used stays with its field for ever: rows lie in topics for years.\n"
        f'syntax = "proto3";\n\npackage {package};\n',
        _imports(table.columns),
        *_message(name, table.columns, f"One row of `{table.name}`.", table.key, table.left_out),
        _change(name),
    ]
    if aggregate_by is not None:
        blocks += _message(*_aggregate(table, aggregate_by), (), ())
    return "\n".join(blocks)


def aggregate_name(table: Table, group: Column) -> str:
    return f"{message_name(table)}By{camel_case(group.name)}"


def summed(table: Table, group: Column) -> list[Column]:
    """Returns the columns that an aggregate sums: those with exact sums; no keys, as their sums say nothing."""
    ids = (*table.key, group.name)
    columns = [each for each in table.columns if _is_exact(each) and not each.repeated and each.name not in ids]
    return [column for column in columns if not column.name.endswith("_id") and column.name != "rows"]


def _is_exact(column: Column) -> bool:
    return column.type in INTEGERS or column.decimal is not None


def _sum(column: Column) -> Column:
    """Returns the column of a sum; a sum of NULLs alone is NULL, so only `optional` tells it from zero."""
    if column.decimal is None:
        return Column(column.name, "int64", column.nullable, note="The sum.")
    decimal = Decimal(MAX_PRECISION, column.decimal.scale)
    return Column(column.name, "string", column.nullable, note="The sum.", decimal=decimal)


def _aggregate(table: Table, group: Column) -> tuple[str, list[Column], str]:
    fields = [
        Column(group.name, group.type, False, labels=group.labels, decimal=group.decimal),
        Column("rows", "int64", False, note="How many."),
    ]
    fields += map(_sum, summed(table, group))
    return aggregate_name(table, group), fields, f"What the rows of `{table.name}` with one `{group.name}` add up to."


def _imports(columns: Sequence[Column]) -> str:
    files = ["statecast/change/v1/change.proto"]
    if any(column.decimal for column in _all(columns)):
        files.append("statecast/change/v1/decimal.proto")
    if any(column.type == TIMESTAMP for column in _all(columns)):
        files.insert(0, "google/protobuf/timestamp.proto")
    return "".join(f'import "{file}";\n' for file in files)


def _all(columns: Sequence[Column]) -> Iterator[Column]:
    for column in columns:
        yield column
        yield from _all(column.fields)


def _message(
    name: str, columns: Sequence[Column], comment: str, key: Sequence[str], left_out: Sequence[str], indent: str = ""
) -> list[str]:
    lines = [*_comment(comment, indent), f"{indent}message {name} {{"]
    inner, types = indent + "  ", _type_names(columns)
    for column in columns:
        if column.labels:
            lines += _enum(column, types[column.name], inner)
        if column.fields:
            nested = _message(types[column.name], column.fields, f"An object of `{column.name}`.", (), (), inner)
            lines += [line.rstrip("\n") for line in nested]
    for number, column in enumerate(columns, start=1):
        field = f"{_field(column, types)} = {number}{_options(column)};"
        lines += [*_comment(_about(column, column.name in key), inner), f"{inner}{field}"]
    lines += [line for reason in left_out for line in _comment(f"Left out: {reason}.", inner)]
    return ["\n".join([*lines, f"{indent}}}\n"])]


def _type_names(columns: Sequence[Column]) -> dict[str, str]:
    """Returns the names of the columns' enums and messages, none of which may be a field's: they share one scope."""
    taken = {column.name for column in columns}
    names: dict[str, str] = {}
    for column in columns:
        if column.labels or column.fields:
            name = camel_case(column.name)
            while name in taken:
                name += "Value"
            taken.add(name)
            names[column.name] = name
    return names


def _enum(column: Column, name: str, indent: str) -> list[str]:
    prefix = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).upper()
    lines = [f"{indent}// The values of `{column.name}`.", f"{indent}enum {name} {{"]
    lines += [f"{indent}  // Not set.", f"{indent}  {prefix}_UNSPECIFIED = 0;"]
    labels = [label for label in column.labels if label.upper() != "UNSPECIFIED"]
    for number, label in enumerate(labels, start=1):
        lines += [f"{indent}  // `{label}`.", f"{indent}  {prefix}_{label.upper()} = {number};"]
    return [*lines, f"{indent}}}"]


def _field(column: Column, types: Mapping[str, str]) -> str:
    type_ = types.get(column.name, column.type)
    # Of a nullable scalar only `optional` tells NULL from zero.
    scalar = column.type not in (TIMESTAMP, "message")
    rule = "repeated " if column.repeated else "optional " if column.nullable and scalar else ""
    return f"{rule}{type_} {column.name}"


def _options(column: Column) -> str:
    if column.decimal is None:
        return ""
    precision, scale = column.decimal.precision, column.decimal.scale
    return f" [(statecast.change.v1.decimal) = {{precision: {precision}, scale: {scale}}}]"


def _about(column: Column, is_key: bool) -> str:
    key = "Of the primary key." if is_key else ""
    if column.repeated:
        empty = "Of an array that holds NULLs make this a `string`: it is JSON then."
    else:
        empty = "Unset for NULL." if column.nullable else ""
    return " ".join(filter(None, (key, column.note, empty))) or f"The column `{column.name}`."


def _comment(text: str, indent: str) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(indent) + len(line) + len(word) > WIDTH:
            yield f"{indent}// {line}"
            line = ""
        line = f"{line} {word}".strip()
    yield f"{indent}// {line}"


def _change(name: str) -> str:
    return f"""\
// One change of one row.
message {name}Change {{
  // What happened to the row.
  statecast.change.v1.Operation operation = 1;
  // Where in the source's log it happened, and when.
  statecast.change.v1.Source source = 2;
  // The row before the change.
  {name} before = 3;
  // The row after the change; absent for DELETE.
  {name} after = 4;
}}
"""
