"""Keeps the rows that the pipeline's condition is true of."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.exact_sql import exact
from stream_processor.steps.row_scope import KEPT, in_scope

_MATCHES = "__matches"


def filter_rows(changes: DataFrame, condition: str | None) -> DataFrame:
    """Takes a row for absent where the condition is not true of it.

    So a row that stops matching leaves its groups like a deleted one, and a row that starts to match enters them like
    a new one. A condition that gives null is not true. Raises Spark's AnalysisException for a condition that does not
    fit the row.
    """
    if condition is None:
        return changes
    return _only_matching(_only_matching(changes, "before", condition), "after", condition)


def _only_matching(changes: DataFrame, row: str, condition: str) -> DataFrame:
    matched = in_scope(changes, row).select(KEPT, exact(condition, changes.sparkSession).alias(_MATCHES))
    columns = {name: F.col(f"{KEPT}.{name}") for name in changes.columns}
    columns[row] = F.when(F.col(_MATCHES), columns[row])
    return matched.select(*[column.alias(name) for name, column in columns.items()])
