"""Puts a row in the scope of SQL expressions: its fields by name, the row itself, and what stands beside it."""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

KEPT = "__kept"
NOTHING: Mapping[str, str] = MappingProxyType({})


def in_scope(changes: DataFrame, row: str, beside: Mapping[str, str] = NOTHING) -> DataFrame:
    """The fields of the struct `row` as columns, and the struct itself as `row`.

    `beside` names columns of `changes` that expressions see under another name: name → column. All columns of
    `changes` stand in the struct KEPT.
    """
    seen = {"row": row, **beside}
    kept = changes.select(F.struct(*changes.columns).alias(KEPT))
    return kept.select(
        KEPT, f"{KEPT}.{row}.*", *[F.col(f"{KEPT}.{column}").alias(name) for name, column in seen.items()]
    )
