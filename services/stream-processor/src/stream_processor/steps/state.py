"""Remembers the entries that each row stood for: the fence that duplicates and late changes cannot pass.

The state is one small entry per row, in a Java operator (Previous.java) that runs in micro-batches and in real-time
mode. It knows nothing of keys and sums: `current` is an array of anything that a row stands for.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.spark_internals import partition_keys, stateful
from stream_processor.steps.dead_letters import LETTER, letter_key
from stream_processor.steps.encode import encode_source
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import is_truncation, row_identity
from stream_processor.steps.outcomes import clock, observe_read, outcome_columns, with_truncation
from stream_processor.steps.windows import CLOCK


def entries(changes: DataFrame, pipeline: Pipeline, functions: Functions, beside: Sequence[str] = ()) -> DataFrame:
    """Returns a line per row that a sound change names, with these columns and those `beside` of the change.

    - `primary_key` (text), `epoch`, `sequence`: which row, and where in its history; a negative sequence is that of
      a row which a snapshot has read when the log was there
    - `time`: by which a change at a lower place is found to be newer; `counted`: whether the line is the one of
      its record that tells how the record ended
    - `current`: the entries of the row after the change; empty when it is gone or does not match
    - `stated`: the entries of the row before the change, as the change itself says; `complete` is false when it
      cannot know them
    - `source`: the encoded StateRecord with nothing but its source; `payload`: the encoded row, null when it is gone

    A change of the primary key names two rows: one goes, and one comes. A truncation has a line for each partition of
    the state, and a dead letter one of its own. `changes` has `current`, `stated`, and the columns for observe_read.
    """
    nothing = F.slice("current", 1, 0)
    # As the change says it, whether the row matches the condition or not.
    old, new = (row_identity(row, pipeline) for row in ("before", "after"))
    yes, no = F.lit(True), F.lit(False)
    gone = F.struct(old.alias("primary_key"), nothing.alias("current"), F.col("stated"), no.alias("counted"))
    come = F.struct(new.alias("primary_key"), F.col("current"), nothing.alias("stated"), yes.alias("counted"))
    one = F.coalesce(letter_key(), new, old)
    same = F.struct(one.alias("primary_key"), F.col("current"), F.col("stated"), yes.alias("counted"))
    everywhere = F.transform(
        F.array(*map(F.lit, partition_keys(changes.sparkSession))),
        lambda key, number: F.struct(
            key.alias("primary_key"), nothing.alias("current"), nothing.alias("stated"), (number == 0).alias("counted")
        ),
    )
    rows = F.when(is_truncation(), everywhere).when(old != new, F.array(gone, come)).otherwise(F.array(same))
    source = F.col("change.source")
    # Everything is computed before the rows are split: of columns computed beside an explode, Spark 4.3's optimizer may
    # lose one that it needs.
    whole = changes.select(
        rows.alias("rows"),
        "epoch",
        "sequence",
        clock(pipeline).alias("time"),
        (F.col("knows_before") | (F.col("change.operation") == "OPERATION_CREATE")).alias("complete"),
        encode_source(source, functions).alias("source"),
        F.when(F.size("current") > 0, F.col("payload")).alias("payload"),
        LETTER,
        *beside,
        *outcome_columns(changes),
    )
    kept = [name for name in whole.columns if name != "rows"]
    return observe_read(whole.select(F.explode("rows").alias("row"), *kept).select("row.*", *kept))


def known_rows(rows: DataFrame, pipeline: Pipeline, every_change: bool) -> DataFrame:
    """Returns the lines behind Previous.java, with the columns that observe_state tells the progress of."""
    forget_s = round(pipeline.definition.forget_deleted.total_seconds())
    return with_truncation(stateful("state.Previous", rows, forget_s, every_change, CLOCK in rows.columns))
