"""Forms the signed difference that a change makes to each group, and which groups' sequences it counts in."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.aggregate_parts import Part, parts
from stream_processor.steps.windows import still_open


def differences(known: DataFrame, pipeline: Pipeline) -> DataFrame:
    """One line per group that a change makes a difference to: `key`, `rows`, the parts, `ticks`, and its place.

    The numbers are the difference between what the row contributes and what the state holds of it, so they add up
    exactly whatever order changes came in. A group that the row stays in has one line, and no reader sees it without
    the row in between. The place is the `epoch`, `sequence` and `source` of the change.

    `ticks` is what the line adds to the group's sequence, 1 or 0: it counts the changes that say themselves, by their
    before and after, that they make a difference to the group. So the sequence after a set of changes is the same in
    whatever order they come, and a restart never ends with a lower one than readers hold. Where a change does not know
    its before it counts by what the state holds. So do all changes where there are windows: those that came too late
    were set aside, the before of the next is not what the state holds, and the changes of a row come in their order.
    """
    wanted = parts(pipeline.aggregates)
    nothing = F.filter("current", lambda _: F.lit(False))
    previous = F.coalesce(F.col("previous"), nothing)
    if pipeline.window is not None:
        previous = F.filter(previous, lambda each: still_open(each.getField("key")))
    made = F.filter(signed(previous, F.col("current"), wanted), lambda _: F.col("applied"))
    said = made if pipeline.window is not None else signed(F.col("stated"), F.col("current"), wanted)
    judged = known.select("epoch", "sequence", "source", "complete", made.alias("made"), said.alias("said"))
    lines = judged.select("epoch", "sequence", "source", F.explode(_ticked(wanted)).alias("line"))
    return lines.select("line.*", "epoch", "sequence", "source")


def signed(left: Column, entered: Column, wanted: Sequence[Part]) -> Column:
    """`entered` minus `left`, both arrays of struct(key, rows, parts...), for each key that does not stay the same."""
    keys = F.array_union(_keys(left), _keys(entered))

    def pair(key: Column) -> Column:
        return F.struct(key.alias("key"), _of(left, key).alias("left"), _of(entered, key).alias("entered"))

    pairs = F.transform(keys, pair)
    changed = F.filter(pairs, lambda each: ~each.getField("left").eqNullSafe(each.getField("entered")))
    return F.transform(changed, lambda each: _difference(each, wanted))


def _difference(pair: Column, wanted: Sequence[Part]) -> Column:
    left, entered = pair.getField("left"), pair.getField("entered")
    named = [pair.getField("key").alias("key"), _minus(entered, left, "rows").alias("rows")]
    for part in wanted:
        added = part.function in ("sum", "count")
        number = _minus(entered, left, part.name) if added else entered.getField(part.name)
        named.append(number.alias(part.name))
    return F.struct(*named)


def _minus(entered: Column, left: Column, name: str) -> Column:
    return F.coalesce(entered.getField(name), F.lit(0)) - F.coalesce(left.getField(name), F.lit(0))


def _ticked(wanted: Sequence[Part]) -> Column:
    """The differences that are made, and one of nothing per group where one is only said; each with its `ticks`."""
    made, said = F.col("made"), F.col("said")
    unmade = F.filter(said, lambda each: ~F.array_contains(_keys(made), each.getField("key")))

    def ticks(line: Column) -> Column:
        return F.when(~F.col("complete") | F.array_contains(_keys(said), line.getField("key")), 1).otherwise(0)

    return F.concat(
        F.transform(made, lambda line: _line(line, wanted, ticks(line))),
        F.transform(unmade, lambda line: _line(_nothing(line, wanted), wanted, F.lit(1))),
    )


def _line(line: Column, wanted: Sequence[Part], ticks: Column) -> Column:
    names = ("key", "rows", *[part.name for part in wanted])
    return F.struct(*[line.getField(name).alias(name) for name in names], ticks.cast("long").alias("ticks"))


def _nothing(line: Column, wanted: Sequence[Part]) -> Column:
    """A difference to the line's group that changes nothing: sums and extremes pass over nulls."""
    numbers = [line.getField(part.name) for part in wanted]
    nulls = [F.nullif(number, number).alias(part.name) for number, part in zip(numbers, wanted, strict=True)]
    return F.struct(line.getField("key").alias("key"), F.lit(0).cast("long").alias("rows"), *nulls)


def _keys(contributions: Column) -> Column:
    return F.transform(contributions, lambda each: each.getField("key"))


def _of(contributions: Column, key: Column) -> Column:
    return F.get(F.filter(contributions, lambda each: each.getField("key") == key), F.lit(0))
