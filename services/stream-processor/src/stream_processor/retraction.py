"""Says what a change does to its groups: which keys the row leaves, and which it stands under now."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline import Pipeline
from stream_processor.record_keys import key_problem, keys


def check_keys(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where `before` or `after` cannot have a key."""
    problems = [key_problem(row, F.col(row), pipeline) for row in ("before", "after")]
    return changes.withColumn("problem", F.coalesce(F.col("problem"), *problems))


def retract(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds `left` and `entered`: the keys to delete, and the keys to set to the row. Changes with a problem have none.

    A key that the row keeps is only set: no reader ever sees it gone in between.
    """
    none = F.array().cast("array<string>")
    sound = F.col("problem").isNull()
    before, after = keys(F.col("before"), pipeline), keys(F.col("after"), pipeline)
    return changes.withColumns(
        {
            "left": F.when(sound, F.array_except(before, after)).otherwise(none),
            "entered": F.when(sound, after).otherwise(none),
        }
    )
