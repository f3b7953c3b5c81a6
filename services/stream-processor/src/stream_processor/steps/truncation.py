"""TRUNCATE of the source's table: a change that names no row, and reaches every partition of the state (ADR 0028)."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

TRUNCATE = "OPERATION_TRUNCATE"
"""The `change.operation` of a truncation, which has no rows. The contract has none such: it goes into no record."""
MARK = "\0"
"""The beginning of a truncation line's `primary_key`, and of no row's (PartitionKeys.java)."""


def is_truncation() -> Column:
    return F.col("change.operation") == TRUNCATE


def truncation_counts() -> list[Column]:
    """Returns the counts of truncations, for an observation of the lines behind the state.

    These are `truncated`, the highest `sequence` of a batch's truncations, null if none, and how many `rows_left`.
    """
    lines = F.col("primary_key").startswith(MARK) & F.col("applied")
    return [
        F.max(F.when(lines, F.col("sequence"))).alias("truncated"),
        F.count_if(lines & (F.size("previous") > 0)).alias("rows_left"),
    ]
