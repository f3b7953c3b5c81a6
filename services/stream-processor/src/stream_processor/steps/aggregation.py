"""Adds up groups: the difference that a change makes to each, and the values that the sums of differences have."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DecimalType

from stream_processor.pipeline.pipeline import SummingPipeline
from stream_processor.steps.contributions import Part, parts_of
from stream_processor.steps.dead_letters import LETTER, explode_groups
from stream_processor.steps.functions import row_type, within
from stream_processor.steps.windows import still_open


def differences(known: DataFrame, pipeline: SummingPipeline) -> DataFrame:
    """Returns a line per group to which a change makes a difference.

    Its columns are `key`, `rows`, the parts, `ticks`, and the position of the change.

    The numbers are the difference between the row's contributions and those that the state holds of it, so they add up
    exactly whichever order changes came in. A group that the row stays in has one line, and no reader sees it without
    the row in between.

    The line adds `ticks`, 1 or 0, to the group's sequence. It is 1 for a change that says itself, by its before and
    after, that it makes a difference to the group. So the sequence after a set of changes is the same in any order of
    them, and a restart never ends with a lower one than readers hold. A change that does not know its before counts by
    the difference to the state. With windows all changes do: those that came too late were set aside, the before of the
    next is not the row in the state, and the changes of a row come in their order. The rows of a table do, too: their
    changes are on one partition.

    Where the table may be truncated, `ticks` is _ticks_and_rows.
    """
    parts = parts_of(pipeline.aggregates)
    nothing = F.slice("current", 1, 0)
    previous = F.coalesce(F.col("previous"), nothing)
    if pipeline.window is not None:
        previous = F.filter(previous, lambda each: still_open(each.getField("key")))
    effective = F.filter(signed(previous, F.col("current"), parts), lambda _: F.col("applied"))
    by_state = (pipeline.window is not None or pipeline.table is not None) and not pipeline.may_be_truncated
    claimed = effective if by_state else signed(F.col("stated"), F.col("current"), parts)
    position = ("epoch", "sequence", "source")
    beside = ("complete", "current", LETTER)
    both = known.select(*position, *beside, effective.alias("effective"), claimed.alias("claimed"))
    ticks = _ticks_and_rows if pipeline.may_be_truncated else _ticks
    return explode_groups(both, _ticked(parts, ticks), position)


def signed(left: Column, entered: Column, parts: Sequence[Part]) -> Column:
    """`entered` minus `left`, both arrays of struct(key, rows, parts...), for each key that does not stay the same."""
    changed = F.filter(paired(left, entered), lambda pair: ~pair.getField("left").eqNullSafe(pair.getField("entered")))
    return F.transform(changed, lambda pair: F.struct(pair.getField("key").alias("key"), *difference(pair, parts)))


def paired(left: Column, entered: Column) -> Column:
    """An array of struct(key, left, entered) for each key of the two; null is the side that has none."""
    keys = F.array_union(left.getField("key"), entered.getField("key"))

    def pair(key: Column) -> Column:
        return F.struct(key.alias("key"), _of(left, key).alias("left"), _of(entered, key).alias("entered"))

    return F.transform(keys, pair)


def difference(pair: Column, parts: Sequence[Part]) -> list[Column]:
    """`rows` and the parts, each of `entered` minus that of `left`."""
    left, entered = pair.getField("left"), pair.getField("entered")

    def minus(name: str) -> Column:
        return F.coalesce(entered.getField(name), F.lit(0)) - F.coalesce(left.getField(name), F.lit(0))

    def difference(part: Part) -> Column:
        if part.function == "collect_set":
            removed, added = left.getField(part.name), entered.getField(part.name)
            return F.struct(removed.alias("removed"), added.alias("added"))
        return minus(part.name) if part.function in ("sum", "count") else entered.getField(part.name)

    numbers = [difference(each) for each in parts]
    named = [number.alias(part.name) for number, part in zip(numbers, parts, strict=True)]
    return [minus("rows").alias("rows"), *named]


def _ticked(parts: Sequence[Part], ticks: Callable[[Column, Column], Column]) -> Column:
    """Per group that is in `effective` or `claimed` the difference that takes effect, if there is any, and its `ticks`.

    Where a difference is only claimed, its numbers are null: sums and extremes pass over nulls.
    """
    effective = F.col("effective")

    def line(each: Column) -> Column:
        key, difference = each.getField("key"), each.getField("difference")
        rows = F.coalesce(difference.getField("rows"), F.lit(0).cast("long"))
        numbers = [difference.getField(part.name).alias(part.name) for part in parts]
        return F.struct(key.alias("key"), rows.alias("rows"), *numbers, ticks(key, rows).cast("long").alias("ticks"))

    keys = F.array_union(effective.getField("key"), F.col("claimed").getField("key"))
    pairs = F.transform(keys, lambda key: F.struct(key.alias("key"), _of(effective, key).alias("difference")))
    return F.transform(pairs, line)


def _ticks(key: Column, _: Column) -> Column:
    return F.when(~F.col("complete") | _is_claimed(key), 1).otherwise(0)


def _ticks_and_rows(key: Column, rows: Column) -> Column:
    """Returns the ticks that a change states by itself, minus the rows that come into the group; 1 or more (ADR 0028).

    So the group's sequence is the sum of the ticks that all changes state, minus the rows that it has in the end: each
    row that a truncation takes out of it raises it. It is the same whether a change came before the truncation or after
    it, when it has no effect any more. The changes of a row come in their order.
    """
    now = _of(F.col("current"), key).getField("rows")
    said = F.when(_is_claimed(key) | now.isNotNull(), F.coalesce(now, F.lit(0)) + 1).otherwise(0)
    return said - rows


def _is_claimed(key: Column) -> Column:
    return F.array_contains(F.col("claimed").getField("key"), key)


def _of(contributions: Column, key: Column) -> Column:
    return F.get(F.filter(contributions, lambda each: each.getField("key") == key), F.lit(0))


def numbers(pipeline: SummingPipeline) -> dict[str, Column]:
    """By field, the aggregates' values of a line that has a group's `rows` and parts; null where one is_beyond."""
    return {name: _fitting(value, name, pipeline) for name, value in _values(pipeline).items()}


def is_beyond(pipeline: SummingPipeline) -> Column:
    """Whether a value is beyond the range of its field, or a sum beyond the digits that Spark adds up."""
    beyond = [
        F.coalesce(value.isNotNull() & _fitting(value, name, pipeline).isNull(), F.lit(False))
        for name, value in _values(pipeline).items()
    ]
    # Every line that is not of a claim alone has a number for each sum, so that it is null of an overflow only.
    sums = [F.col(part.name).isNull() for part in parts_of(pipeline.aggregates) if part.function == "sum"]
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
                # It has no nulls, which Spark does not know of what a user-defined aggregate gives.
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
