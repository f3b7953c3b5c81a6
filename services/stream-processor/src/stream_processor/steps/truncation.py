"""TRUNCATE of the source's table: a change that names no row, and reaches every partition of the state (ADR 0028)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

TRUNCATE = "OPERATION_TRUNCATE"
"""The `change.operation` of a truncation, which has no rows. The contract has none such: it goes into no record."""
OBSERVED = "truncation"
"""The name under which a query's progress tells of truncations: struct(sequence, rows)."""
MARK = "\0"
"""What the `primary_key` of a truncation's lines begins with, and that of no row (PartitionKeys.java)."""


def is_truncation() -> Column:
    return F.col("change.operation") == TRUNCATE


def observe_truncations(known: DataFrame) -> DataFrame:
    """Lets the progress tell the highest `sequence` of a batch's truncations, null if none, and how many `rows` left.

    `known` are the lines that previous_rows gives.
    """
    lines = F.col("primary_key").startswith(MARK)
    return known.observe(
        OBSERVED,
        F.max(F.when(lines, F.col("sequence"))).alias("sequence"),
        F.count_if(lines & (F.size("previous") > 0)).alias("rows"),
    )
