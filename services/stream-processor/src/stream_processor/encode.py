"""Encodes what a change writes, once per change however many groups it touches.

It stands before the grouping, so that Spark's state holds encoded records: a new field in the contract then changes
no state schema, and a checkpoint outlives it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.functions import Functions

STATE_RECORD = "statecast.state.v1.StateRecord"


def encode(changes: DataFrame, row_message: str, functions: Functions) -> DataFrame:
    """From `left` and `entered` to one line per key: `key`, `epoch`, `sequence`, `deleted`, `record`.

    `record` is a StateRecord's bytes; of a deleted key it has no payload.
    """
    source = F.col("change.source")
    epoch, sequence = source.getField("epoch"), source.getField("log_sequence_number")

    def record(payload: Column) -> Column:
        return functions.encode(F.struct(epoch, sequence, source, payload), STATE_RECORD)

    tombstone = record(F.lit(None).cast("binary"))
    full = record(functions.encode(F.col("after"), row_message))
    encoded = changes.select(
        epoch.alias("epoch"),
        sequence.alias("sequence"),
        F.when(F.size("left") > 0, tombstone).alias("tombstone"),
        F.when(F.size("entered") > 0, full).alias("full"),
        F.size("left").alias("leaving"),
        F.concat("left", "entered").alias("keys"),
    )
    lines = encoded.select("epoch", "sequence", "tombstone", "full", "leaving", F.posexplode("keys").alias("at", "key"))
    deleted = F.col("at") < F.col("leaving")
    chosen = F.when(deleted, F.col("tombstone")).otherwise(F.col("full"))
    return lines.select("key", "epoch", "sequence", deleted.alias("deleted"), chosen.alias("record"))
