"""Says what a row contributes to each group that it is in: a count, and the numbers of the aggregates."""

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType, DecimalType, IntegralType

from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import PipelineFileError
from stream_processor.steps.aggregate_parts import Part, parts
from stream_processor.steps.exact_sql import exact
from stream_processor.steps.record_keys import elements, single
from stream_processor.steps.row_scope import KEPT, in_scope
from stream_processor.steps.windows import window_tail

DIGITS = 28
"""Of what a row adds to a sum. A group's sum has Spark's 38: room for ten thousand million rows."""
_ELEMENTS, _TAIL, _UNITS = "__elements", "__tail", "__units"


def contributions(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds `current` and `stated` of an aggregate: what `after` contributes, and what `before` did.

    Each is an array with one struct(key, rows, parts...) per group that the row is in. A repeated group fans the row
    out: every element counts. Raises PipelineFileError for an expression that Spark cannot compute, or not exactly.
    """
    return _contributed(_contributed(changes, "after", "current", pipeline), "before", "stated", pipeline)


def _contributed(changes: DataFrame, row: str, name: str, pipeline: Pipeline) -> DataFrame:
    """Adds the column `name`: what the row contributes. Its units are what one element does, or the row as a whole."""
    wanted = parts(pipeline.aggregates)
    scoped = _scoped(changes, row, pipeline)
    types = {part.name: _type(scoped, part, pipeline) for part in wanted}
    computed = scoped.select(KEPT, exact(_units(pipeline, wanted), scoped.sparkSession).alias(_UNITS))
    amounts = F.transform(_UNITS, lambda unit: _amounts(unit, wanted, types))
    summed = _by_key(amounts, wanted, types) if pipeline.group.repeated else amounts
    nothing = F.array().cast(computed.select(summed.alias(name)).schema[name].dataType)
    kept = F.when(F.col(f"{KEPT}.{row}").isNotNull(), summed).otherwise(nothing)
    return computed.select(f"{KEPT}.*", kept.alias(name))


def _scoped(changes: DataFrame, row: str, pipeline: Pipeline) -> DataFrame:
    scoped = in_scope(changes, row)
    whole, element = F.col("row"), pipeline.group.element
    found = F.array(single(whole, pipeline.group)) if element is None else elements(whole, element)
    return scoped.withColumns({_ELEMENTS: found, _TAIL: window_tail(whole, pipeline.window)})


def _units(pipeline: Pipeline, wanted: Sequence[Part]) -> str:
    """SQL for an array of struct(key, what each part's expression gives), with `element` in the expressions' scope."""
    depth = 0 if pipeline.group.element is None else len(pipeline.group.element.fields)
    group = ".".join(["element", *(f"`{name}`" for name in pipeline.group.names[depth:] if depth)])
    given = "".join(f", '{part.name}', ({part.argument})" for part in wanted)
    return f"transform({_ELEMENTS}, element -> named_struct('key', concat(cast({group} as string), {_TAIL}){given}))"


def _type(scoped: DataFrame, part: Part, pipeline: Pipeline) -> DataType:
    """The type of the part's numbers in a row."""
    key = f"keep.aggregate.{part.field}"
    try:
        unit = exact(_units(pipeline, [part]), scoped.sparkSession)
        units = scoped.select(unit.alias(_UNITS)).schema[_UNITS].dataType
    except AnalysisException as error:
        raise PipelineFileError(pipeline.file, key, (error.getMessage() or str(error)).splitlines()[0]) from error
    given: DataType = units.elementType[part.name].dataType  # type: ignore[attr-defined]  # it is an array of structs
    if part.function != "sum":
        return given
    if isinstance(given, IntegralType):
        return DecimalType(DIGITS, 0)
    if isinstance(given, DecimalType) and given.precision <= DIGITS:
        return DecimalType(DIGITS, given.scale)
    problem = f"{part.argument} is of type {given.simpleString()}, whose sums are not exact: cast it to an integer or"
    raise PipelineFileError(pipeline.file, key, f"{problem} a decimal of at most {DIGITS} digits")


def _amounts(unit: Column, wanted: Sequence[Part], types: dict[str, DataType]) -> Column:
    named = [unit.getField("key").alias("key"), F.lit(1).cast("long").alias("rows")]
    for part in wanted:
        given = unit.getField(part.name)
        if part.function == "sum":
            given = F.coalesce(given.cast(types[part.name]), F.lit(0).cast(types[part.name]))
        elif part.function == "count":
            given = F.when(given.isNull(), 0).otherwise(1).cast("long")
        named.append(given.alias(part.name))
    return F.struct(*named)


def _by_key(amounts: Column, wanted: Sequence[Part], types: dict[str, DataType]) -> Column:
    """Adds up what the elements of one row contribute to the same group."""
    keys = F.array_distinct(F.transform(amounts, lambda each: each.getField("key")))

    def group(key: Column) -> Column:
        own = F.filter(amounts, lambda each: each.getField("key") == key)
        named = [key.alias("key"), F.size(own).cast("long").alias("rows")]
        return F.struct(*named, *[_merged(own, part, types[part.name]).alias(part.name) for part in wanted])

    return F.transform(keys, group)


def _merged(own: Column, part: Part, of_type: DataType) -> Column:
    numbers = F.transform(own, lambda each: each.getField(part.name))
    if part.function in ("min", "max"):
        return F.array_min(numbers) if part.function == "min" else F.array_max(numbers)
    total = DecimalType(DIGITS, getattr(of_type, "scale", 0)) if part.function == "sum" else "long"
    return F.aggregate(numbers, F.lit(0).cast(total), lambda sum_, each: (sum_ + each).cast(total))
