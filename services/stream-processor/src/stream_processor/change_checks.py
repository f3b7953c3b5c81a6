"""Finds what is wrong with a decoded change before anything is made of it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

HAS_BEFORE = ("OPERATION_UPDATE", "OPERATION_DELETE")
HAS_AFTER = ("OPERATION_CREATE", "OPERATION_UPDATE", "OPERATION_SNAPSHOT")


def check_change(changes: DataFrame) -> DataFrame:
    """Sets `problem` where the change contradicts itself, and adds `before` and `after`, which a sound change fills.

    The rules are those of statecast.change.v1.Operation: each operation has exactly the rows that it speaks of, and
    the source says where the change stands in its log.
    """
    before, after = F.col("change.before"), F.col("change.after")
    return changes.withColumns(
        {"problem": F.coalesce(F.col("problem"), _problem(before, after)), "before": before, "after": after}
    )


def _problem(before: Column, after: Column) -> Column:
    operation = F.col("change.operation")
    return F.coalesce(
        F.when(operation == "OPERATION_UNSPECIFIED", "operation is not set"),
        F.when(F.col("change.source").isNull() & F.col("change").isNotNull(), "source is not set"),
        *_presence("before", before, operation, HAS_BEFORE),
        *_presence("after", after, operation, HAS_AFTER),
    )


def _presence(name: str, row: Column, operation: Column, needed_by: tuple[str, ...]) -> tuple[Column, Column]:
    needed = operation.isin(*needed_by)
    return (
        F.when(needed & row.isNull(), F.concat(F.lit(f"{name} is not set, but operation is "), operation)),
        F.when(~needed & row.isNotNull(), F.concat(F.lit(f"{name} is set, but operation is "), operation)),
    )
