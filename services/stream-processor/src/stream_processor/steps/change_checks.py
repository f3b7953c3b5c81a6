"""Finds what is wrong with a decoded change before anything is made of it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

NEEDS_BEFORE = ("OPERATION_DELETE",)
MAY_HAVE_BEFORE = ("OPERATION_UPDATE", "OPERATION_DELETE")
HAS_AFTER = ("OPERATION_CREATE", "OPERATION_UPDATE", "OPERATION_SNAPSHOT")


def check_change(changes: DataFrame) -> DataFrame:
    """Sets `problem` where the change contradicts itself, and adds `before` and `after`, which a sound change fills.

    The rules are those of statecast.change.v1.Operation: each operation has the rows that it speaks of, and the source
    says where the change stands in its log. Only an update may come without its row before: a database does not log it
    unless it is told to, and the state knows the row.
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
        _missing("before", before, operation, NEEDS_BEFORE),
        _unexpected("before", before, operation, MAY_HAVE_BEFORE),
        _missing("after", after, operation, HAS_AFTER),
        _unexpected("after", after, operation, HAS_AFTER),
    )


def _missing(name: str, row: Column, operation: Column, by: tuple[str, ...]) -> Column:
    wrong = operation.isin(*by) & row.isNull()
    return F.when(wrong, F.concat(F.lit(f"{name} is not set, but operation is "), operation))


def _unexpected(name: str, row: Column, operation: Column, by: tuple[str, ...]) -> Column:
    wrong = ~operation.isin(*by) & row.isNotNull()
    return F.when(wrong, F.concat(F.lit(f"{name} is set, but operation is "), operation))
