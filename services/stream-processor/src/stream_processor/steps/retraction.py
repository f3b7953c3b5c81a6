"""Says what a change does to its groups: which keys the row leaves, and which it stands under now."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.encode import record
from stream_processor.steps.functions import Functions


def retract(known: DataFrame) -> DataFrame:
    """Adds `left` and `entered`: the keys to delete, and the keys to set to the row.

    A key that the row keeps is only set: no reader ever sees it gone in between. What the change states is deleted too,
    whatever is remembered: it may stand on the topic when the state has forgotten it, or from before a crash.
    """
    stood = F.array_union(F.coalesce("previous", F.array().cast("array<string>")), F.col("stated"))
    return known.withColumns({"left": F.array_except(stood, F.col("current")), "entered": F.col("current")})


def to_lines(retracted: DataFrame, functions: Functions) -> DataFrame:
    """One line per key that is deleted or set: `key`, `deleted`, and `record`, the bytes of its StateRecord."""
    epoch, sequence, source = F.col("epoch"), F.col("sequence"), F.col("source")
    tombstone = record(epoch, sequence, source, F.lit(None).cast("binary"), functions)
    full = record(epoch, sequence, source, F.col("payload"), functions)
    encoded = retracted.select(
        F.when(F.size("left") > 0, tombstone).alias("tombstone"),
        F.when(F.size("entered") > 0, full).alias("full"),
        F.size("left").alias("leaving"),
        F.concat("left", "entered").alias("keys"),
    )
    lines = encoded.select("tombstone", "full", "leaving", F.posexplode("keys").alias("at", "key"))
    deleted = F.col("at") < F.col("leaving")
    chosen = F.when(deleted, F.col("tombstone")).otherwise(F.col("full"))
    return lines.select("key", deleted.alias("deleted"), chosen.alias("record"))
