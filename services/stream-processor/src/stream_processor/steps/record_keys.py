"""Forms the keys under which a row stands on the keyed topic, and finds rows that cannot have one."""

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline import Pipeline

NUL = "\0"
RFC3339 = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
"""UTC with six decimals: 27 characters whose order is the order of time. The session's time zone must be UTC."""
INTEGER_WIDTH = 19


def keys(row: Column, pipeline: Pipeline) -> Column:
    """The row's keys without repetition, as an array of text: `group`, or `group NUL sort NUL member`.

    A row has one key per group it is in; a null row has none.
    """
    tail: list[Column] = []
    if pipeline.member is not None and pipeline.sort is not None:
        tail = [F.lit(NUL), sort_text(row, pipeline.sort), F.lit(NUL), single(row, pipeline.member)]
    if pipeline.group.repeated:
        groups = F.array_distinct(values(row, pipeline.group))
        named = F.transform(groups, lambda group: F.concat(group, *tail))
    else:
        named = F.array(F.concat(single(row, pipeline.group), *tail))
    return F.when(row.isNotNull(), named).otherwise(F.array().cast("array<string>"))


def key_problem(name: str, row: Column, pipeline: Pipeline) -> Column:
    """Why the row (called `name` in the reason) cannot have keys; null when it can, or when there is no row."""
    problems = _text_problems(f"{name}.{pipeline.group}", _any_of(row, pipeline.group))
    if pipeline.member is not None and pipeline.sort is not None:
        problems += _text_problems(f"{name}.{pipeline.member}", _any_of(row, pipeline.member))
        problems += _sort_problems(f"{name}.{pipeline.sort}", row, pipeline.sort)
    return F.when(row.isNotNull(), F.coalesce(*problems))


def _any_of(row: Column, path: FieldPath) -> Callable[[Callable[[Column], Column]], Column]:
    if path.repeated:
        return lambda wrong: F.exists(values(row, path), wrong)
    return lambda wrong: wrong(single(row, path))


def _sort_problems(name: str, row: Column, path: FieldPath) -> list[Column]:
    value = at(row, path)
    if path.kind == "string":
        return _text_problems(name, _any_of(row, path))
    problems = [F.when(value.isNull(), f"{name} is empty, a key needs it")]
    if path.kind == "integer":
        problems.append(F.when(value < 0, f"{name} is negative, its text would not sort as it does"))
    return problems


def _text_problems(name: str, any_is: Callable[[Callable[[Column], Column]], Column]) -> list[Column]:
    return [
        F.when(any_is(lambda text: text.isNull() | (text == "")), f"{name} is empty, a key needs it"),
        F.when(any_is(lambda text: text.contains(NUL)), f"{name} holds a NUL, which separates the parts of a key"),
    ]


def values(row: Column, path: FieldPath) -> Column:
    """All values of the path in the row, as an array of text."""
    return elements(row, path).cast("array<string>")


def elements(row: Column, path: FieldPath) -> Column:
    """All values of the path in the row, as an array of what they are."""
    found, many = row, False
    for field in path.fields:
        found = found.getField(field.name)
        found = F.flatten(found) if many and field.is_repeated else found
        many = many or field.is_repeated
    return found if many else F.array(found)


def single(row: Column, path: FieldPath) -> Column:
    """The value of a path that is not repeated, as text."""
    return at(row, path).cast("string")


def sort_text(row: Column, path: FieldPath) -> Column:
    """The value as text whose order is the value's order."""
    value = at(row, path)
    if path.kind == "timestamp":
        return F.date_format(value, RFC3339)
    return F.lpad(value.cast("string"), INTEGER_WIDTH, "0") if path.kind == "integer" else value


def at(row: Column, path: FieldPath) -> Column:
    """The value of a path that is not repeated."""
    return reduce(lambda found, name: found.getField(name), path.names, row)
