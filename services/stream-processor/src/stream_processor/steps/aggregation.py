"""Keeps one message per group: the contributions of rows, the difference that a change makes, and the sums of those."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType, DecimalType, IntegralType, LongType, StringType

from statecast_domains.errors import PipelineFileError
from stream_processor.definition.decimals import decimal_of
from stream_processor.definition.pipeline import (
    WINDOW_FIELDS,
    Aggregate,
    AggregateFunction,
    AggregatePipeline,
    SummingPipeline,
)
from stream_processor.spark_internals import attempt, exact
from stream_processor.steps.dead_letters import LETTER, explode_groups
from stream_processor.steps.functions import Functions, digits, filled, fits, row_type
from stream_processor.steps.keyed_topic import encode_record
from stream_processor.steps.projection import KEPT, in_scope, refused
from stream_processor.steps.record_keys import NUL, elements, key_text, still_open, values_of, window_tails

PartFunction = Literal["sum", "count", "min", "max", "collect_set"]
PART_FUNCTIONS: Mapping[AggregateFunction, tuple[PartFunction, ...]] = {
    "count": (),
    "sum": ("sum",),
    "avg": ("sum", "count"),
    "min": ("min",),
    "max": ("max",),
    "collect_set": ("collect_set",),
}
DEFAULT_SET_BYTES = 256 * 1024
"""Most bytes of a set's values, where nothing tells how large the sink's records may be."""
MAX_DIGITS = 28
"""Digits of a number that a row adds to a sum, decimals among them.

A group's sum has Spark's 38: room for 10,000 million rows.
"""
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_ELEMENTS, _TAILS, _UNITS = "__elements", "__tails", "__units"


@dataclass(frozen=True)
class Part:
    """One number beside the count of a group's rows; `argument` is SQL on the row, `field` the file's key for it."""

    name: str
    function: PartFunction
    argument: str
    field: str


def parts_of(aggregates: Sequence[Aggregate]) -> list[Part]:
    """Returns the numbers of which the aggregates are made: count(*) has none, for rows are counted anyway.

    An average has two. A sum with a field that can be null has two as well: it is null where no row has a value, as in
    SQL.
    """
    return [
        Part(f"{function}_{number}", function, aggregate.argument, aggregate.field.name)
        for number, aggregate in enumerate(aggregates)
        if aggregate.argument is not None
        for function in (*PART_FUNCTIONS[aggregate.function], *(("count",) if may_be_null(aggregate) else ()))
    ]


def may_be_null(aggregate: Aggregate) -> bool:
    """Whether it is a sum with a field that tells null from 0: an optional one, or a decimal (empty if null)."""
    field = aggregate.field
    return aggregate.function == "sum" and (field.has_presence or decimal_of(field) is not None)


def contributions(changes: DataFrame, pipeline: SummingPipeline) -> DataFrame:
    """Adds `current` and `stated` of an aggregate: the contributions of `after`, and those of `before`.

    Each is an array with one struct(key, rows, parts...) per group that the row is in. A repeated group fans the row
    out: every element counts. Raises PipelineFileError for an expression that Spark cannot compute, or not exactly.
    """
    return _contributed(_contributed(changes, "after", "current", pipeline), "before", "stated", pipeline)


def _contributed(changes: DataFrame, row: str, name: str, pipeline: SummingPipeline) -> DataFrame:
    """Adds the column `name`: the row's contributions. Its units are those of one element, or of the row as a whole."""
    parts = parts_of(pipeline.aggregates)
    whole, element = F.col("row"), pipeline.group.element
    values = F.array(key_text(whole, pipeline.group)) if element is None else elements(whole, element)
    # A row whose group is null is in no group.
    scoped = in_scope(changes, row).withColumns({_ELEMENTS: values, _TAILS: window_tails(whole, pipeline.window)})
    types = {part.name: _type(scoped, part, pipeline) for part in parts}
    computed = scoped.select(KEPT, exact(_units(pipeline, parts), scoped.sparkSession).alias(_UNITS))
    grouped = F.filter(_UNITS, lambda unit: unit.getField("key").isNotNull())
    amounts = F.transform(grouped, lambda unit: _amounts(unit, parts, types))
    summed = _by_key(amounts, parts, types) if pipeline.group.repeated else amounts
    nothing = F.array().cast(computed.select(summed.alias(name)).schema[name].dataType)
    kept = F.when(F.col(f"{KEPT}.{row}").isNotNull(), summed).otherwise(nothing)
    return computed.select(f"{KEPT}.*", kept.alias(name))


def _units(pipeline: SummingPipeline, parts: Sequence[Part]) -> str:
    """Returns SQL for an array of struct(key, values of the parts' expressions), which may use `element`."""
    depth = 0 if pipeline.group.element is None else len(pipeline.group.element.fields)
    path = pipeline.group.paths[0]
    group = ".".join(["element", *(f"`{name}`" for name in path.names[depth:] if depth)])
    decimal = path.decimal if depth else None
    text = f"cast({group} as string)" if decimal is None else f"replace(format_number({group}, {decimal.scale}), ',')"
    value = "".join(f", '{part.name}', {attempt(part.argument)}" for part in parts)
    unit = f"named_struct('key', concat({text}, __tail){value})"
    return f"flatten(transform({_TAILS}, __tail -> transform({_ELEMENTS}, element -> {unit})))"


def _type(scoped: DataFrame, part: Part, pipeline: SummingPipeline) -> DataType:
    """The type of the part's expression. Raises PipelineFileError if its field cannot hold all values exactly."""
    key = f"{pipeline.numbers_key}.{part.field}"
    try:
        unit = exact(_units(pipeline, [part]), scoped.sparkSession)
        units = scoped.select(unit.alias(_UNITS)).schema[_UNITS].dataType
    except AnalysisException as error:
        raise refused(pipeline, key, error) from error
    value: DataType = units.elementType[part.name].dataType  # type: ignore[attr-defined]  # it is an array of structs
    if part.function == "collect_set":
        return _set_type(part, value, pipeline)
    if part.function == "sum" and digits(value)[1] > MAX_DIGITS:
        problem = f"{part.argument} is of type {value.simpleString()}, whose sums are not exact: cast it to an integer"
        raise PipelineFileError(pipeline.file, key, f"{problem} or a decimal with at most {MAX_DIGITS} digits")
    declared = row_type(pipeline.sink)[part.field].dataType
    if isinstance(declared, IntegralType | DecimalType) and digits(value)[1] > digits(declared)[1]:
        problem = (
            f"{part.argument} is {value.simpleString()}, the field needs {declared.simpleString()}: round or cast it"
        )
        raise PipelineFileError(pipeline.file, key, problem)
    return value


def _set_type(part: Part, value: DataType, pipeline: SummingPipeline) -> DataType:
    """The type that the values of a set are kept in. Raises PipelineFileError if they do not fit their field."""
    element, kept = _set_types(part.field, pipeline)
    if not fits(value, element):
        problem = f"{part.argument} is {value.simpleString()}, the field needs {element.simpleString()}"
        raise PipelineFileError(pipeline.file, f"keep.aggregate.{part.field}", problem)
    return kept


def _set_types(field: str, pipeline: SummingPipeline) -> tuple[DataType, DataType]:
    """The type of the values in the field of a set, and the one that they are kept in: texts, or 64-bit integers."""
    element: DataType = row_type(pipeline.sink)[field].dataType.elementType  # type: ignore[attr-defined]  # it is repeated
    return element, StringType() if isinstance(element, StringType) else LongType()


def _sum_type(value: DataType) -> DecimalType:
    return DecimalType(MAX_DIGITS, value.scale if isinstance(value, DecimalType) else 0)


def _summand(number: Column, part: Part, of_type: DataType) -> Column:
    """Returns the number in the type of its sum; for a decimal that has too many digits for it, an error."""
    summand = number.cast(_sum_type(of_type))
    if not isinstance(of_type, DecimalType):
        return summand
    problem = F.concat(
        F.lit(f"{part.field}: {part.argument} has more than {MAX_DIGITS} digits: "), number.cast("string")
    )
    return F.when(number.isNull() | summand.isNotNull(), summand).otherwise(F.raise_error(problem))


def _amounts(unit: Column, parts: Sequence[Part], types: dict[str, DataType]) -> Column:
    named = [unit.getField("key").alias("key"), F.lit(1).cast("long").alias("rows")]
    for part in parts:
        value = unit.getField(part.name)
        if part.function == "sum":
            zero = F.lit(0).cast(_sum_type(types[part.name]))
            value = F.coalesce(_summand(value, part, types[part.name]), zero)
        elif part.function == "count":
            value = F.when(value.isNull(), 0).otherwise(1).cast("long")
        elif part.function == "collect_set":
            value = F.array_compact(F.array(value.cast(types[part.name])))
        named.append(value.alias(part.name))
    return F.struct(*named)


def _by_key(amounts: Column, parts: Sequence[Part], types: dict[str, DataType]) -> Column:
    """Adds up the contributions of one row's elements to the same group."""
    keys = F.array_distinct(amounts.getField("key"))

    def group(key: Column) -> Column:
        own = F.filter(amounts, lambda each: each.getField("key") == key)
        named = [key.alias("key"), F.size(own).cast("long").alias("rows")]
        return F.struct(*named, *[_merged(own, part, types[part.name]).alias(part.name) for part in parts])

    return F.transform(keys, group)


def _merged(own: Column, part: Part, of_type: DataType) -> Column:
    numbers = own.getField(part.name)
    if part.function == "collect_set":
        return F.sort_array(F.flatten(numbers))
    if part.function in ("min", "max"):
        return F.array_min(numbers) if part.function == "min" else F.array_max(numbers)
    if part.function == "count":
        return F.aggregate(numbers, F.lit(0).cast("long"), lambda sum_, each: sum_ + each)
    zero = F.lit(0).cast(_sum_type(of_type))
    return F.aggregate(numbers, zero, lambda sum_, each: _summand(sum_ + each, part, of_type))


def differences(known: DataFrame, pipeline: AggregatePipeline) -> DataFrame:
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
    nothing = F.filter("current", lambda _: F.lit(False))
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


def aggregate(lines: DataFrame, pipeline: AggregatePipeline, epoch: int, functions: Functions) -> DataFrame:
    """Per group that has changed `key`, `deleted` and `record`; a group without rows is deleted. Letters pass.

    The record's epoch is `epoch`, the life of the checkpoint, for its sequence is a count. A sum that does not fit its
    field ends the query, and names the group: it is never cut. Spark's state is one entry per group that ever was, and
    one per dead letter.
    """
    parts = parts_of(pipeline.aggregates)
    newest = F.max_by("source", F.struct("epoch", "sequence")).alias("source")
    functions_of = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max, "collect_set": sets(pipeline, functions)}
    sums = [F.sum("rows").alias("rows"), F.sum("ticks").alias("ticks"), newest]
    sums += [functions_of[part.function](part.name).alias(part.name) for part in parts]
    # A letter is a group of its own, which never gets another line.
    sums.append(F.first(LETTER, ignorenulls=True).alias(LETTER))
    groups = lines.groupBy("key").agg(*sums)
    payload = functions.encode(_message(pipeline), pipeline.sink.full_name)
    deleted = F.col("rows") == 0
    encoded = groups.withColumn("payload", F.when(~deleted, payload))
    full = encode_record(F.lit(epoch).cast("long"), F.col("ticks"), F.col("source"), F.col("payload"), functions)
    return encoded.select("key", deleted.alias("deleted"), full.alias("record"), LETTER)


def sets(pipeline: AggregatePipeline, functions: Functions) -> Callable[[str], Column]:
    """The aggregate of a set's part, by its name."""
    room = 2 * DEFAULT_SET_BYTES if pipeline.max_payload_bytes is None else pipeline.max_payload_bytes
    aggregates = enumerate(pipeline.aggregates)
    fields = {f"collect_set_{number}": (each.field.name, each.limit) for number, each in aggregates if each.limit}

    def collected(part: str) -> Column:
        field, limit = fields[part]
        _, kept = _set_types(field, pipeline)
        removed, added = F.col(f"{part}.removed"), F.col(f"{part}.added")
        return functions.collect_set(removed, added, kept, limit, room // (2 * len(fields)))

    return collected


def _message(pipeline: AggregatePipeline) -> Column:
    """The row of the sink's message; fields that are neither the group's nor an aggregate's stay unset."""
    key = F.split("key", NUL)
    groups = values_of(key.getItem(0), pipeline.group)
    columns = {field.name: value for field, value in zip(pipeline.group_fields, groups, strict=True)}
    if pipeline.window is not None:
        columns |= {name: key.getItem(place) for place, name in enumerate(WINDOW_FIELDS, start=1)}
    return filled(pipeline.sink, columns | numbers(pipeline))


def numbers(pipeline: SummingPipeline) -> dict[str, Column]:
    """By field, the aggregates' values of a line that has a group's `key`, `rows` and parts."""
    columns = {}
    for number, each in enumerate(pipeline.aggregates):
        match each.function:
            case "count":
                value = F.col("rows")
            case "avg":
                value = F.col(f"sum_{number}").cast("double") / F.col(f"count_{number}")
            case "sum" if may_be_null(each):
                value = F.when(F.col(f"count_{number}") > 0, F.col(f"sum_{number}"))
            case "collect_set":
                # It has no nulls, which Spark does not know of what a user-defined aggregate gives.
                value = F.array_compact(f"collect_set_{number}.values")
                columns[each.truncated] = F.col(f"collect_set_{number}.truncated")
            case function:
                value = F.col(f"{function}_{number}")
        columns[each.field.name] = _fitting(value, each.field.name, pipeline)
    return columns


def _fitting(value: Column, field: str, pipeline: SummingPipeline) -> Column:
    """Returns the value, or an error when it is beyond the range of its field."""
    declared = row_type(pipeline.sink)[field].dataType
    if not isinstance(declared, LongType | DecimalType):
        return value
    fits = value.between(_MIN_INT64, _MAX_INT64)
    if isinstance(declared, DecimalType):
        fits = value.cast(declared).isNotNull()
    problem = F.concat(
        F.lit(f"{pipeline.name}: {field} of "), "key", F.lit(" is beyond what its field holds: "), value.cast("string")
    )
    return F.when(value.isNull() | fits, value).otherwise(F.raise_error(problem))
