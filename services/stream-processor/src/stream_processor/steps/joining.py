"""Joins rows with keyed topics that are looked up as global tables.

A row is joined with what the table holds at that moment, some tens of milliseconds after the table's own change. A
later change of the table does not rewrite what was joined before.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Join, Pipeline
from stream_processor.steps.functions import Functions
from stream_processor.steps.record_keys import single


def join(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds a struct column per joined table: the row of it that `after` names; null where there is none."""

    def found(table: Join) -> DataFrame:
        key = single(F.col("after"), table.key)
        return changes.withColumn(column(table), functions.lookup(key, table.topic, table.message.full_name))

    for each in pipeline.joins:
        changes = found(each)
    return changes


def column(table: Join) -> str:
    """The column that a table's rows stand in."""
    return f"__table_{table.name}"
