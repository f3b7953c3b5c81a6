"""Infers columns and their types from the values of a JSON sample."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from statecast_onboarding.table import TIMESTAMP, Column, array_column, json_column

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?")
_MAX_INT64 = 2**63
_NULL = "Null in the sample: correct the type."
_EMPTY = "Empty in the sample."


def sampled_columns(row: Mapping[str, Any]) -> tuple[Column, ...]:
    """Returns a column for each value of a row."""
    return tuple(_sampled(name, value) for name, value in row.items())


def _sampled(name: str, value: Any) -> Column:
    match value:
        case bool():
            return Column(name, "bool")
        case int() if abs(value) < _MAX_INT64:
            return Column(name, "int64")
        case int() | float():
            return Column(name, "double")
        case str() if _MOMENT.fullmatch(value):
            return Column(name, TIMESTAMP)
        case dict():
            return Column(name, "message", fields=sampled_columns(value))
        case list():
            return _array(Column(name, "string", nullable=False), value)
    return Column(name, "string", note=_NULL if value is None else "")


def _array(column: Column, values: Sequence[Any]) -> Column:
    """Returns an array of elements of one type; others are JSON, as arrays with NULLs are."""
    if not values:
        return replace(column, repeated=True, note=_EMPTY)
    if None in values:
        return json_column(column)
    return array_column(column, reduce(_common, (_sampled(column.name, value) for value in values)))


def _common(one: Column, other: Column) -> Column:
    """Returns the column that takes the values of both."""
    if one == other or other.note in (_NULL, _EMPTY):
        return one
    if one.note in (_NULL, _EMPTY):
        return other
    types = {one.type, other.type}
    if one.repeated == other.repeated:
        if types == {"message"}:
            return replace(one, fields=_common_fields(one.fields, other.fields))
        if types == {"int64", "double"}:
            return replace(one, type="double")
        if types == {TIMESTAMP, "string"}:
            return replace(one, type="string", note=one.note or other.note)
    return json_column(Column(one.name, "string"))


def _common_fields(one: Sequence[Column], other: Sequence[Column]) -> tuple[Column, ...]:
    fields = {field.name: field for field in one}
    for field in other:
        fields[field.name] = _common(fields[field.name], field) if field.name in fields else field
    return tuple(fields.values())
