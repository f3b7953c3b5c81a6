"""Finds rows that cannot have the keys which a pipeline needs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline
from stream_processor.steps.record_keys import key_problem, single


def check_keys(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where `before` or `after` cannot have a key on the topic, or a row has no primary key.

    The primary key is asked for even of rows that do not match: such a change too is one of a row's history.
    """
    problems = [key_problem(row, F.col(row), pipeline) for row in ("before", "after")]
    if (path := pipeline.primary_key) is not None:
        for row in ("before", "after"):
            value = single(F.col(f"change.{row}"), path)
            empty = F.col(f"change.{row}").isNotNull() & (value.isNull() | (value == ""))
            problems.append(F.when(empty, f"{row}.{path} is empty, a row needs its key"))
    return changes.withColumn("problem", F.coalesce(F.col("problem"), *problems))
