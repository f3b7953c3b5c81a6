"""Computes the contributions of a row to the sums of groups, in digits that add up exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType, DecimalType, IntegralType, LongType, StringType

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import (
    Aggregate,
    AggregateFunction,
    SummingPipeline,
)
from stream_processor.spark_internals import attempt, exact
from stream_processor.steps.functions import digits, fits, row_type
from stream_processor.steps.keys import elements, key_text
from stream_processor.steps.projection import KEPT, in_scope, refused
from stream_processor.steps.windows import window_tails

PartFunction = Literal["sum", "count", "min", "max", "collect_set"]
PART_FUNCTIONS: Mapping[AggregateFunction, tuple[PartFunction, ...]] = {
    "count": (),
    "sum": ("sum",),
    "avg": ("sum", "count"),
    "min": ("min",),
    "max": ("max",),
    "collect_set": ("collect_set",),
}
MAX_DIGITS = 28
"""Digits of a number that a row adds to a sum, decimals among them.

A group's sum has Spark's 38: room for 10,000 million rows.
"""
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
        for function in (*PART_FUNCTIONS[aggregate.function], *(("count",) if aggregate.may_be_null else ()))
    ]


def contributions(changes: DataFrame, pipeline: SummingPipeline) -> DataFrame:
    """Adds `current` and `stated` of an aggregate: the contributions of `after`, and those of `before`.

    Each is an array with one struct(key, rows, parts...) per group that the row is in. A repeated group fans the row
    out: every element counts. Raises PipelineFileError for an expression that Spark cannot compute, or not exactly.
    """
    return contributed(contributed(changes, "after", "current", pipeline), "before", "stated", pipeline)


def check_numbers(changes: DataFrame, pipeline: SummingPipeline) -> DataFrame:
    """Sets `problem` where a row adds more digits to a sum than MAX_DIGITS. Raises PipelineFileError as contributions.

    A row with a repeated group is measured as if all its elements were of one group.
    """
    scoped = _units_in_scope(changes, "after", pipeline)
    sums = [part for part in parts_of(pipeline.aggregates) if part.function == "sum"]
    types = {part.name: _type(scoped, part, pipeline) for part in sums}
    large = [part for part in sums if isinstance(types[part.name], DecimalType)]
    if not large:
        return changes
    computed = scoped.select(KEPT, exact(_units(pipeline, large), scoped.sparkSession).alias(_UNITS))
    problems = [_digits_problem(F.col(_UNITS).getField(part.name), part, types[part.name]) for part in large]
    is_sound = F.col("problem").isNull() & F.col("passed_over").isNull()
    checked = computed.select(f"{KEPT}.*", F.coalesce(*problems).alias(_UNITS))
    return checked.withColumn("problem", F.when(is_sound, F.col(_UNITS)).otherwise(F.col("problem"))).drop(_UNITS)


def _digits_problem(values: Column, part: Part, of_type: DataType) -> Column:
    widest = DecimalType(38, _sum_type(of_type).scale)
    zero = F.lit(0).cast(widest)
    total = F.aggregate(values, zero, lambda sum_, each: (sum_ + F.coalesce(F.abs(each), zero)).cast(widest))
    text = F.lit(f"{part.field}: {part.argument} has more than {MAX_DIGITS} digits")
    return F.when(total.cast(_sum_type(of_type)).isNull(), text)


def contributed(changes: DataFrame, row: str, name: str, pipeline: SummingPipeline) -> DataFrame:
    """Adds the column `name`: the row's contributions. Its units are those of one element, or of the row as a whole."""
    parts = parts_of(pipeline.aggregates)
    scoped = _units_in_scope(changes, row, pipeline)
    types = {part.name: _type(scoped, part, pipeline) for part in parts}
    computed = scoped.select(KEPT, exact(_units(pipeline, parts), scoped.sparkSession).alias(_UNITS))
    grouped = F.filter(_UNITS, lambda unit: unit.getField("key").isNotNull())
    amounts = F.transform(grouped, lambda unit: _amounts(unit, parts, types))
    summed = _by_key(amounts, parts, types) if pipeline.group.repeated else amounts
    nothing = F.array().cast(computed.select(summed.alias(name)).schema[name].dataType)
    kept = F.when(F.col(f"{KEPT}.{row}").isNotNull(), summed).otherwise(nothing)
    return computed.select(f"{KEPT}.*", kept.alias(name))


def _units_in_scope(changes: DataFrame, row: str, pipeline: SummingPipeline) -> DataFrame:
    """The scope of `_units` on the struct `row`."""
    whole, element = F.col("row"), pipeline.group.element
    values = F.array(key_text(whole, pipeline.group)) if element is None else elements(whole, element)
    # A row whose group is null is in no group.
    return in_scope(changes, row).withColumns({_ELEMENTS: values, _TAILS: window_tails(whole, pipeline.window)})


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
    element, kept = set_types(part.field, pipeline)
    if not fits(value, element):
        problem = f"{part.argument} is {value.simpleString()}, the field needs {element.simpleString()}"
        raise PipelineFileError(pipeline.file, f"keep.aggregate.{part.field}", problem)
    return kept


def set_types(field: str, pipeline: SummingPipeline) -> tuple[DataType, DataType]:
    """The type of the values in the field of a set, and the one that they are kept in: texts, or 64-bit integers."""
    element: DataType = row_type(pipeline.sink)[field].dataType.elementType  # type: ignore[attr-defined]  # it is repeated
    return element, StringType() if isinstance(element, StringType) else LongType()


def _sum_type(value: DataType) -> DecimalType:
    return DecimalType(MAX_DIGITS, value.scale if isinstance(value, DecimalType) else 0)


def _amounts(unit: Column, parts: Sequence[Part], types: dict[str, DataType]) -> Column:
    named = [unit.getField("key").alias("key"), F.lit(1).cast("long").alias("rows")]
    for part in parts:
        value = unit.getField(part.name)
        if part.function == "sum":
            zero = F.lit(0).cast(_sum_type(types[part.name]))
            # Of the row before, which a change states, what has too many digits was never counted.
            value = F.coalesce(value.cast(_sum_type(types[part.name])), zero)
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
    total = F.aggregate(numbers, zero, lambda sum_, each: (sum_ + each).cast(_sum_type(of_type)))
    return F.coalesce(total, zero)
