"""Hands each change what its row stood for before: the fence that duplicates and late changes cannot pass.

The state is one small entry per row, in a Java operator (`io.statecast.spark.Previous`) that runs in micro-batches and
in real-time mode. It knows nothing of keys and sums: `current` is an array of whatever a row stands for.
"""

from datetime import timedelta
from typing import Any, cast

from pyspark.sql import DataFrame


def with_previous(changes: DataFrame, forget: timedelta, every_change: bool) -> DataFrame:
    """Adds `previous`, the `current` of the row's last applied change, and `applied`.

    `changes` has `primary_key`, `epoch`, `sequence` and `current`. A change whose (epoch, sequence) is not higher than
    that of its row's last one is not applied: it is left out, or goes on with `previous` null when `every_change`.
    `previous` is also null when nothing is known of the row: it is new, or has been without entries for longer than
    `forget`. Shuffles by the primary key. Of changes of a row that come in one micro-batch only the newest goes on,
    unless `every_change`.
    """
    spark = changes.sparkSession
    operator = cast(Any, spark._jvm).io.statecast.spark.Previous
    return DataFrame(operator.apply(cast(Any, changes)._jdf, round(forget.total_seconds()), every_change), spark)
