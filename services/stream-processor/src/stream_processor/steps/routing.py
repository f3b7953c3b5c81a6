"""Passes rows on to a plain topic: filtered, mapped and exploded, without state.

Records are written at least once: after a crash, those since the last checkpoint come again, and nothing in them tells
a reader so. A reader to whom that matters compares keys and values, or reads a keyed topic.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.contract import FieldPath
from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from stream_processor.steps.joining import join
from stream_processor.steps.projection import ELEMENT, project


def route(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """The records of checked and filtered changes: `key`, the group as text, and `value`, the encoded message.

    A change gives one when its operation is among the route's and it has a row that matches; with `explode`, one per
    element. Kafka's own partitioner places them by their key.
    """
    sound = F.col("problem").isNull() & F.col("after").isNotNull()
    passed = changes.where(sound & F.col("change.operation").isin(*pipeline.operations))
    joined = join(passed, pipeline, functions)
    if pipeline.explode is not None:
        joined = joined.withColumn(ELEMENT, F.explode(_elements(F.col("after"), pipeline.explode)))
    written = project(joined.withColumn("__key", _key(pipeline)), pipeline, functions)
    return written.select(F.col("__key").cast("binary").alias("key"), F.col("payload").alias("value"))


def _elements(row: Column, path: FieldPath) -> Column:
    """The elements of all arrays on the path, in one array."""
    at, many = row, False
    for field in path.fields:
        at = at.getField(field.name)
        at = F.flatten(at) if many and field.is_repeated else at
        many = many or field.is_repeated
    return at


def _key(pipeline: Pipeline) -> Column:
    start, fields = F.col("after"), pipeline.group.fields
    if pipeline.explode is not None and pipeline.group.repeated:
        start, fields = F.col(ELEMENT), fields[len(pipeline.explode.fields) :]
    return reduce(lambda at, field: at.getField(field.name), fields, start).cast("string")
