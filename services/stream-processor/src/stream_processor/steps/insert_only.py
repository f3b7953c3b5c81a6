"""Finds changes that contradict a pipeline whose rows are never changed or deleted."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline

INSERTS = ("OPERATION_CREATE", "OPERATION_SNAPSHOT")


def check_insert_only(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where the file says `insert_only` and the change is no insert."""
    if not pipeline.definition.insert_only:
        return changes
    operation = F.col("change.operation")
    problem = F.when(~operation.isin(*INSERTS), F.concat(F.lit("insert_only is true, but operation is "), operation))
    return changes.withColumn("problem", F.coalesce(F.col("problem"), problem))
