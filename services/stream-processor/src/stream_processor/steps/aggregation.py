"""Adds the differences up per group, and makes the group's message of the sums."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType, LongType

from stream_processor.definition.aggregates import Aggregate
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps import row_schema
from stream_processor.steps.aggregate_parts import Part, parts
from stream_processor.steps.encode import record
from stream_processor.steps.functions import Functions
from stream_processor.steps.record_keys import NUL

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def aggregate(lines: DataFrame, pipeline: Pipeline, epoch: int, functions: Functions) -> DataFrame:
    """Per group that has changed `key`, `deleted` and `record`; a group without rows is deleted.

    `lines` is what `differences` gives. The record's epoch is `epoch`, the life of the checkpoint, for its sequence is
    a count. A sum that does not fit its field ends the query, and names the group: it is never cut. Spark's state is
    one entry per group that ever was.
    """
    wanted = parts(pipeline.aggregates)
    newest = F.max_by("source", F.struct("epoch", "sequence")).alias("source")
    sums = [F.sum("rows").alias("rows"), F.sum("ticks").alias("ticks"), newest, *map(_summed, wanted)]
    groups = lines.groupBy("key").agg(*sums)
    payload = functions.encode(_message(pipeline), pipeline.sink.full_name)
    deleted = F.col("rows") == 0
    made = groups.withColumn("payload", F.when(~deleted, payload))
    full = record(F.lit(epoch).cast("long"), F.col("ticks"), F.col("source"), F.col("payload"), functions)
    return made.select("key", deleted.alias("deleted"), full.alias("record"))


def _summed(part: Part) -> Column:
    functions = {"sum": F.sum, "count": F.sum, "min": F.min, "max": F.max}
    return functions[part.function](part.name).alias(part.name)


def _message(pipeline: Pipeline) -> Column:
    """The row of the sink's message; fields that are neither the group's nor an aggregate's stay unset."""
    of_field = {each.field.name: (number, each) for number, each in enumerate(pipeline.aggregates)}
    key = F.split("key", NUL)
    texts = {"window_start": key.getItem(1), "window_end": key.getItem(2)} if pipeline.window else {}
    if pipeline.group_field is not None:
        texts[pipeline.group_field.name] = key.getItem(0)
    fields = []
    for field in row_schema.of(pipeline.sink).fields:
        value = F.lit(None)
        if field.name in texts:
            value = texts[field.name]
        elif field.name in of_field:
            value = _fitting(_result(*of_field[field.name]), field.dataType, f"{pipeline.name}: {field.name}")
        fields.append(value.cast(field.dataType).alias(field.name))
    return F.struct(*fields)


def _result(number: int, aggregate_: Aggregate) -> Column:
    if aggregate_.function == "count":
        return F.col("rows")
    if aggregate_.function != "avg":
        return F.col(f"{aggregate_.function}_{number}")
    return F.col(f"sum_{number}").cast("double") / F.col(f"count_{number}")


def _fitting(value: Column, of_type: DataType, name: str) -> Column:
    """The value, or an error when it is beyond what its field can hold."""
    if of_type != LongType():
        return value
    told = F.concat(F.lit(f"{name} of "), "key", F.lit(" is beyond what its field holds: "), value.cast("string"))
    return F.when(value.isNull() | value.between(_LOWEST, _HIGHEST), value).otherwise(F.raise_error(told))
