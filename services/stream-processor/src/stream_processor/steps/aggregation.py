"""Adds up groups: the difference that a change makes to each, and the values that the sums of differences have."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DecimalType

from stream_processor.pipeline.pipeline import SummingPipeline
from stream_processor.steps.contributions import parts_of
from stream_processor.steps.dead_letters import LETTER, explode_groups
from stream_processor.steps.functions import Functions, row_type, within
from stream_processor.steps.outcomes import observe_state, state_columns
from stream_processor.steps.windows import still_open

SOURCE = ("committed", "sequence", "source")
"""Columns of a line: the time of the commit in microseconds, the place in its partition, and the encoded source."""


def differences(known: DataFrame, pipeline: SummingPipeline, functions: Functions) -> DataFrame:
    """Returns a line per group to which a change makes a difference.

    Its columns are `key`, `rows`, the parts, `ticks`, SOURCE and LETTER.

    The numbers are the difference between the row's contributions and those that the state holds of it, so they add up
    exactly whichever order changes came in. A group that the row stays in has one line, and no reader sees it without
    the row in between.

    The line adds `ticks`, 1 or 0, to the group's sequence. It is 1 for a change that says itself, by its before and
    after, that it makes a difference to the group. So the sequence after a set of changes is the same in any order of
    them, and a restart never ends with a lower one than readers hold. A change that does not know its before counts by
    the difference to the state. With windows all changes do: those that came too late were set aside, the before of the
    next is not the row in the state, and the changes of a row come in their order. The rows of a table do, too: their
    changes are on one partition.

    Where the table may be truncated, the change alone states `ticks`: the rows of its after plus 1, minus the
    rows that come into the group (ADR 0028). So the group's sequence is the sum of the ticks that all changes state,
    minus the rows that it has in the end: each row that a truncation takes out of it raises it. It is the same whether
    a change came before the truncation or after it, when it has no effect any more.
    """
    previous = F.coalesce("previous", _nothing())
    if pipeline.window is not None:
        previous = F.filter(previous, lambda each: still_open(each.getField("key")))
    # A truncation says nothing of rows.
    complete = F.coalesce("complete", F.lit(True))
    columns = (previous, F.col("current"), F.col("stated"), F.col("applied"), complete)
    by_state = pipeline.window is not None or pipeline.table is not None
    lines = "TRUNCATED" if pipeline.may_be_truncated else "CHANGED" if by_state else "STATED"
    return _exploded(known, pipeline, functions, lines, columns, SOURCE)


def added(events: DataFrame, pipeline: SummingPipeline, functions: Functions) -> DataFrame:
    """Returns a line per group that an event adds to; each adds 1 to the group's sequence. It is one of differences."""
    columns = (_nothing(), F.col("current"), _nothing(), F.lit(True), F.lit(True))
    return _exploded(events, pipeline, functions, "CHANGED", columns, SOURCE)


def touched(known: DataFrame, pipeline: SummingPipeline, functions: Functions, kept: Sequence[str]) -> DataFrame:
    """Returns a line per group that the row of an applied change was in or is in, with the columns `kept`.

    Its columns are `key`, `rows`, the parts, `stood` and `stands`: whether the row was in the group, and is in it.
    """
    previous = F.coalesce("previous", _nothing())
    columns = (previous, F.col("current"), previous, F.col("applied"), F.lit(True))
    return _exploded(known, pipeline, functions, "EVERY", columns, kept)


def _nothing() -> Column:
    return F.slice("current", 1, 0)


def _exploded(
    changes: DataFrame,
    pipeline: SummingPipeline,
    functions: Functions,
    lines: str,
    columns: Sequence[Column],
    kept: Sequence[str],
) -> DataFrame:
    entry = cast(ArrayType, changes.schema["current"].dataType).elementType
    line = functions.differences(entry, [part.fold for part in parts_of(pipeline)], lines, columns)
    outcomes = state_columns(changes)
    narrow = changes.select(line.alias("lines"), *kept, LETTER, *outcomes)
    return explode_groups(observe_state(narrow) if outcomes else narrow, F.col("lines"), kept)


def numbers(pipeline: SummingPipeline) -> dict[str, Column]:
    """Returns, by field, the aggregates' values of a line with a group's `rows` and parts; null where one is_beyond."""
    return {name: _fitting(value, name, pipeline) for name, value in _values(pipeline).items()}


def is_beyond(pipeline: SummingPipeline) -> Column:
    """Returns whether a value is beyond the range of its field, or a sum beyond the digits that Spark adds up."""
    beyond = [
        F.coalesce(value.isNotNull() & _fitting(value, name, pipeline).isNull(), F.lit(False))
        for name, value in _values(pipeline).items()
    ]
    # Every line that is not of a claim alone has a number for each sum, so that it is null of an overflow only.
    sums = [F.col(part.name).isNull() for part in parts_of(pipeline) if part.function == "sum"]
    return reduce(or_, [*beyond, *sums], F.lit(False))


def _values(pipeline: SummingPipeline) -> dict[str, Column]:
    columns = {}
    for number, each in enumerate(pipeline.aggregates):
        match each.function:
            case "count":
                value = F.col("rows")
            case "avg":
                value = F.col(f"sum_{number}").cast("double") / F.col(f"count_{number}")
            case "sum" if each.may_be_null:
                value = F.when(F.col(f"count_{number}") > 0, F.col(f"sum_{number}"))
            case "collect_set":
                # It has no nulls, which Spark does not know of the result of a user-defined aggregate.
                value = F.array_compact(f"collect_set_{number}.values")
                columns[each.truncated] = F.col(f"collect_set_{number}.truncated")
            case function:
                value = F.col(f"{function}_{number}")
        columns[each.field.name] = value
    return columns


def _fitting(value: Column, field: str, pipeline: SummingPipeline) -> Column:
    """Returns the value; null when it is beyond the range of its field."""
    declared = row_type(pipeline.sink)[field].dataType
    if isinstance(declared, DecimalType):
        value = F.when(value.cast(declared).isNotNull(), value)
    return within(value, pipeline.sink.fields_by_name[field])
