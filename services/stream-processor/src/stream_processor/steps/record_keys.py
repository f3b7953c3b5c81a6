"""Forms the keys under which a row stands on the keyed topic, windows among them, and finds rows that have none."""

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline import (
    AggregatePipeline,
    KeyPipeline,
    MembersPipeline,
    Pipeline,
    RoutePipeline,
    Window,
)

NUL = "\0"
RFC3339 = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
"""UTC with six decimals: 27 characters whose order is the order of time. The session's time zone must be UTC."""
MAX_PART = 1_024
"""Characters of one part of a key; the edges take no longer ones either."""
INTEGER_WIDTH = 19
RFC3339_LENGTH = 27
TOO_LONG = f" has more than {MAX_PART:,} characters, a key takes no more"
HORIZON = "window_horizon"
"""A column of text: windows that end before it are closed to the change. Null when the source gives no commit time."""


def keys(row: Column, pipeline: KeyPipeline) -> Column:
    """The row's keys as text, one per group that it is in: `group`, or `group NUL sort NUL member`."""
    tail: list[Column] = []
    if isinstance(pipeline, MembersPipeline):
        tail = [F.lit(NUL), sort_text(row, pipeline.sort), F.lit(NUL), single(row, pipeline.member)]
    if pipeline.group.repeated:
        groups = F.array_distinct(elements(row, pipeline.group).cast("array<string>"))
        row_keys = F.transform(groups, lambda group: F.concat(group, *tail))
    else:
        row_keys = F.array(F.concat(single(row, pipeline.group), *tail))
    return F.when(row.isNotNull(), row_keys).otherwise(F.array().cast("array<string>"))


def key_problems(pipeline: Pipeline) -> list[Column]:
    """Why `before` or `after` cannot have a key on the topic, or a row has no primary key.

    The primary key is needed even by rows that do not match: their changes too are part of a row's history.
    """
    problems = [_key_problem(row, F.col(row), pipeline) for row in ("before", "after")]
    if not isinstance(pipeline, RoutePipeline):
        for row in ("before", "after"):
            value = single(F.col(f"change.{row}"), pipeline.primary_key)
            empty = F.col(f"change.{row}").isNotNull() & (value.isNull() | (value == ""))
            problems.append(F.when(empty, f"{row}.{pipeline.primary_key} is empty, a row needs its key"))
            problems.append(F.when(_too_long(value), f"{row}.{pipeline.primary_key}{TOO_LONG}"))
    return problems


def _key_problem(name: str, row: Column, pipeline: Pipeline) -> Column:
    """Why the row (called `name` in the reason) cannot have keys; null when it can, or when there is no row."""
    problems = _text_problems(name, row, pipeline.group)
    if isinstance(pipeline, MembersPipeline):
        problems += _text_problems(name, row, pipeline.member) + _sort_problems(name, row, pipeline.sort)
    return F.when(row.isNotNull(), F.coalesce(*problems))


def _sort_problems(name: str, row: Column, path: FieldPath) -> list[Column]:
    if path.kind == "string":
        return _text_problems(name, row, path)
    value = at(row, path)
    negative = F.when(value < 0, f"{name}.{path} is negative, its text would not sort as it does")
    return [
        F.when(value.isNull(), f"{name}.{path} is empty, a key needs it"),
        *([negative] if path.kind == "integer" else []),
    ]


def _text_problems(name: str, row: Column, path: FieldPath) -> list[Column]:
    def any_is(wrong: Callable[[Column], Column]) -> Column:
        if path.repeated:
            return F.exists(elements(row, path).cast("array<string>"), wrong)
        return wrong(single(row, path))

    shown = f"{name}.{path}"
    return [
        F.when(any_is(lambda text: text.isNull() | (text == "")), f"{shown} is empty, a key needs it"),
        F.when(any_is(lambda text: text.contains(NUL)), f"{shown} holds a NUL, which separates the parts of a key"),
        F.when(any_is(_too_long), f"{shown}{TOO_LONG}"),
    ]


def _too_long(text: Column) -> Column:
    return F.length(text) > MAX_PART


def elements(row: Column, path: FieldPath) -> Column:
    """All values of the path in the row, as an array; those of nested arrays in one."""
    value, many = row, False
    for field in path.fields:
        value = value.getField(field.name)
        value = F.flatten(value) if many and field.is_repeated else value
        many = many or field.is_repeated
    return value if many else F.array(value)


def single(row: Column, path: FieldPath) -> Column:
    """The value of a path that is not repeated, as text."""
    return at(row, path).cast("string")


def sort_text(row: Column, path: FieldPath) -> Column:
    """The value as text that sorts as it does."""
    value = at(row, path)
    if path.kind == "timestamp":
        return F.date_format(value, RFC3339)
    return F.lpad(value.cast("string"), INTEGER_WIDTH, "0") if path.kind == "integer" else value


def at(row: Column, path: FieldPath) -> Column:
    """The value of a path that is not repeated."""
    return reduce(lambda value, name: value.getField(name), path.names, row)


def _window_bounds(row: Column, window: Window) -> Sequence[Column]:
    """The texts of start and end of the window that the row's time is in; a time at the end is in the next."""
    micros = F.unix_micros(at(row, window.time))
    size = round(window.size.total_seconds() * 1_000_000)
    start = micros - F.pmod(micros, F.lit(size))
    return [F.date_format(F.timestamp_micros(each), RFC3339) for each in (start, start + size)]


def window_tail(row: Column, window: Window | None) -> Column:
    """What a key has behind its group: start and end of the window, or nothing."""
    if window is None:
        return F.lit("")
    start, end = _window_bounds(row, window)
    return F.concat(F.lit(NUL), start, F.lit(NUL), end)


def check_windows(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where a row has no window, or one that was closed when the change was committed; adds the HORIZON.

    A window closes `lateness` after its end by the source's clock, so that the answer rests on the change alone. It is
    final then: a change whose row stands in it, before or after, is set aside whole.
    """
    if not isinstance(pipeline, AggregatePipeline) or pipeline.window is None:
        return changes
    window = pipeline.window
    lateness = F.lit(round(window.lateness.total_seconds() * 1_000_000))
    committed = F.unix_micros(F.col("change.source.commit_time"))
    horizon = F.date_format(F.timestamp_micros(committed - lateness), RFC3339)
    problems = [_window_problem(row, window, horizon) for row in ("before", "after")]
    return changes.withColumns({"problem": F.coalesce(F.col("problem"), *problems), HORIZON: horizon})


def still_open(key: Column) -> Column:
    """Whether the window that the key ends with is open to the line's change."""
    return F.coalesce(F.right(key, F.lit(RFC3339_LENGTH)) >= F.col(HORIZON), F.lit(True))


def _window_problem(row: str, window: Window, horizon: Column) -> Column:
    name, value = f"{row}.{window.time}", at(F.col(row), window.time)
    _, end = _window_bounds(F.col(row), window)
    too_late = F.concat(F.lit(f"too late: the window of {name} ended at "), end)
    return F.when(
        F.col(row).isNotNull(),
        F.coalesce(F.when(value.isNull(), f"{name} is empty, a window needs it"), F.when(end < horizon, too_late)),
    )
