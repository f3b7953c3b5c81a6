"""Keeps the newest line of each key: the fence that replays and duplicates cannot pass."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses


def keep_newest(lines: DataFrame) -> DataFrame:
    """Per `key` the `deleted` and `record` of the highest (epoch, sequence).

    A higher epoch wins over any sequence of a lower one. Spark's state is a row per key that ever was, deleted ones
    too: without it a late change of a deleted row would bring it back.
    """
    newest = F.max_by(F.struct("deleted", "record"), F.struct("epoch", "sequence"))
    return lines.groupBy("key").agg(newest.alias("newest")).select("key", "newest.deleted", "newest.record")
