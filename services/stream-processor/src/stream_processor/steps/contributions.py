"""Computes the contributions of a row to the sums of groups, in digits that add up exactly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import ArrayType, DataType, DecimalType, IntegralType, LongType, StringType, StructType

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import (
    Aggregate,
    AggregateFunction,
    SummingPipeline,
)
from stream_processor.spark_internals import attempt, exact
from stream_processor.steps.functions import Functions, digits, fits, row_type
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
DEFAULT_SET_BYTES = 256 * 1024
"""Most bytes of a set's values, where nothing tells how large the sink's records may be."""
_KEY, _ELEMENTS, _TAILS, _UNITS = "__key", "__elements", "__tails", "__units"


@dataclass(frozen=True)
class Part:
    """One number beside the count of a group's rows; `argument` is SQL on the row, `field` the file's key for it.

    `fold` is the function of GroupPart.java.
    """

    name: str
    function: PartFunction
    fold: str
    argument: str
    field: str


def parts_of(pipeline: SummingPipeline) -> list[Part]:
    """Returns the numbers of which the aggregates are made: count(*) has none, for rows are counted anyway.

    An average has two. A sum with a field that can be null has two as well: it is null where no row has a value, as in
    SQL.
    """
    return [
        Part(f"{function}_{number}", function, _fold(function, each, pipeline), each.argument, each.field.name)
        for number, each in enumerate(pipeline.aggregates)
        if each.argument is not None
        for function in (*PART_FUNCTIONS[each.function], *(("count",) if each.may_be_null else ()))
    ]


def _fold(function: PartFunction, aggregate: Aggregate, pipeline: SummingPipeline) -> str:
    if function != "collect_set":
        return "sum" if function == "count" else function
    room = 2 * DEFAULT_SET_BYTES if pipeline.max_payload_bytes is None else pipeline.max_payload_bytes
    sets = sum(each.limit > 0 for each in pipeline.aggregates)
    return f"collect_set {aggregate.limit} {room // (2 * sets)}"


def contributions(changes: DataFrame, pipeline: SummingPipeline, functions: Functions) -> DataFrame:
    """Adds `current` and `stated` of an aggregate: the contributions of `after`, and those of `before`.

    Each is an array with one struct(key, rows, parts...) per group that the row is in. A repeated group fans the row
    out: every element counts. Raises PipelineFileError for an expression that Spark cannot compute, or not exactly.
    """
    current = contributed(changes, "after", "current", pipeline, functions)
    return contributed(current, "before", "stated", pipeline, functions)


def check_numbers(changes: DataFrame, pipeline: SummingPipeline) -> DataFrame:
    """Sets `problem` where a row adds more digits to a sum than MAX_DIGITS. Raises PipelineFileError as contributions.

    A row with a repeated group is measured as if all its elements were of one group.
    """
    scoped = _units_in_scope(changes, "after", pipeline)
    sums = [part for part in parts_of(pipeline) if part.function == "sum"]
    types = {part.name: _type(scoped, part, pipeline) for part in sums}
    large = [part for part in sums if isinstance(types[part.name], DecimalType)]
    if not large:
        return changes
    computed = scoped.select(KEPT, exact(_units(pipeline, large, _value), scoped.sparkSession).alias(_UNITS))
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


def contributed(changes: DataFrame, row: str, name: str, pipeline: SummingPipeline, functions: Functions) -> DataFrame:
    """Adds the column `name`: the row's contributions. Its units are those of one element, or of the row as a whole."""
    parts = parts_of(pipeline)
    scoped = _units_in_scope(changes, row, pipeline)
    types = {part.name: _type(scoped, part, pipeline) for part in parts}
    units = exact(_units(pipeline, parts, lambda part: _amount(part, types[part.name])), scoped.sparkSession)
    computed = scoped.select(KEPT, units.alias(_UNITS))
    summed = functions.contributions(computed, _UNITS, _entry_type(parts, types), [part.fold for part in parts])
    nothing = F.array().cast(ArrayType(_entry_type(parts, types), containsNull=False))
    return computed.select(f"{KEPT}.*", F.coalesce(summed, nothing).alias(name))


def _units_in_scope(changes: DataFrame, row: str, pipeline: SummingPipeline) -> DataFrame:
    """Returns the scope of `_units` on the struct `row`. A row with a null group is in no group."""
    whole, element, scoped = F.col(f"{KEPT}.{row}"), pipeline.group.element, in_scope(changes, row)
    if element is None:
        scoped = scoped.withColumn(_KEY, key_text(whole, pipeline.group))
    else:
        scoped = scoped.withColumn(_ELEMENTS, elements(whole, element))
    return scoped if pipeline.window is None else scoped.withColumn(_TAILS, window_tails(whole, pipeline.window))


def _units(pipeline: SummingPipeline, parts: Sequence[Part], value: Callable[[Part], str]) -> str:
    """Returns SQL for an array of struct(key, a value of each part), which may use `element`."""
    key = _key_of_unit(pipeline)
    tailed = key if pipeline.window is None else f"concat({key}, __tail)"
    values = "".join(f", '{part.name}', {value(part)}" for part in parts)
    unit = f"named_struct('key', {tailed}{values})"
    units = f"array({unit})"
    if pipeline.group.element is not None:
        units = f"transform({_ELEMENTS}, element -> {unit})"
    return units if pipeline.window is None else f"flatten(transform({_TAILS}, __tail -> {units}))"


def _key_of_unit(pipeline: SummingPipeline) -> str:
    """Returns SQL for the text of the group that a unit counts in."""
    element, path = pipeline.group.element, pipeline.group.paths[0]
    if element is None:
        return _KEY
    group = ".".join(["element", *(f"`{name}`" for name in path.names[len(element.fields) :])])
    if path.decimal is None:
        return f"cast({group} as string)"
    return f"replace(format_number({group}, {path.decimal.scale}), ',')"


def _value(part: Part) -> str:
    return attempt(part.argument)


def _amount(part: Part, of_type: DataType) -> str:
    """Returns SQL for the part's value in a unit. A value with too many digits was never counted."""
    match part.function:
        case "sum":
            sum_type = _sum_type(of_type).simpleString()
            return f"coalesce(cast({_value(part)} as {sum_type}), cast(0 as {sum_type}))"
        case "count":
            return f"cast({_value(part)} is not null as bigint)"
        case "collect_set":
            return f"cast({_value(part)} as {of_type.simpleString()})"
        case _:
            return _value(part)


def _entry_type(parts: Sequence[Part], types: Mapping[str, DataType]) -> StructType:
    """Returns the type of a row's contribution to a group."""
    entry = StructType().add("key", StringType()).add("rows", LongType(), nullable=False)
    for part in parts:
        of_type = types[part.name]
        match part.function:
            case "sum":
                of_type = _sum_type(of_type)
            case "count":
                of_type = LongType()
            case "collect_set":
                of_type = ArrayType(of_type, containsNull=False)
        entry = entry.add(part.name, of_type)
    return entry


def _type(scoped: DataFrame, part: Part, pipeline: SummingPipeline) -> DataType:
    """Returns the type of the part's expression.

    Raises PipelineFileError if its field cannot hold all values exactly.
    """
    key = f"{pipeline.numbers_key}.{part.field}"
    try:
        unit = exact(_units(pipeline, [part], _value), scoped.sparkSession)
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
    """Returns the type that the values of a set are kept in.

    Raises PipelineFileError if they do not fit their field.
    """
    element, kept = set_types(part.field, pipeline)
    if not fits(value, element):
        problem = f"{part.argument} is {value.simpleString()}, the field needs {element.simpleString()}"
        raise PipelineFileError(pipeline.file, f"keep.aggregate.{part.field}", problem)
    return kept


def set_types(field: str, pipeline: SummingPipeline) -> tuple[DataType, DataType]:
    """Returns the type of the values in a set's field, and the type that keeps them: texts, or 64-bit integers."""
    element: DataType = row_type(pipeline.sink)[field].dataType.elementType  # type: ignore[attr-defined]  # it is repeated
    return element, StringType() if isinstance(element, StringType) else LongType()


def _sum_type(value: DataType) -> DecimalType:
    return DecimalType(MAX_DIGITS, value.scale if isinstance(value, DecimalType) else 0)
