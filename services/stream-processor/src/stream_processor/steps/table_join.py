"""Joins two tables by the keys of their records: a change of either side writes the joined row anew (ADR 0040).

A Java operator (TableJoin.java) holds the encoded rows of both sides, and emits a key once per micro-batch. Its output
is the same when a batch runs again after a crash: Spark writes down a batch's input, and its time, before it begins.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import JoinSide, TableJoinPipeline
from stream_processor.spark_internals import table_join
from stream_processor.steps.dead_letters import LETTER, is_letter, letter_key
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import encode_record, encode_source
from stream_processor.steps.outcomes import STATE, WITHHELD, clock, observe_withheld, state_counts
from stream_processor.steps.projection import KEPT, in_scope, message_of

_ROWS = ("source_row", "joined_row")
_JOINED, _MESSAGE = "__joined", "__message"


def joined_lines(
    changes: Sequence[DataFrame], pipeline: TableJoinPipeline, epoch: int, functions: Functions
) -> DataFrame:
    """The lines of keyed_topic.to_lines, from the sound changes of both sides; `epoch` is that of all.

    A joined row is withheld where `select` makes a message that the topic does not take. Raises PipelineFileError for
    an expression that Spark cannot compute.
    """
    source, joined = (
        _lines(each, side, reader, functions)
        for side, (each, reader) in enumerate(zip(changes, pipeline.sides, strict=True))
    )
    kind = pipeline.join_type
    known = table_join(source.union(joined), pipeline.definition.forget_deleted, kind != "inner", kind == "outer")
    joined_rows = known.observe(STATE, *state_counts()).where(F.col("deleted").isNotNull() | is_letter())
    rows = [_row(F.col(name), side.row.full_name, functions) for name, side in zip(_ROWS, pipeline.sides, strict=True)]
    scoped = in_scope(
        joined_rows.withColumns(dict(zip(("after", _JOINED), rows, strict=True))),
        "after",
        {pipeline.joined_as: _JOINED},
    )
    message = message_of(scoped, pipeline, functions)
    made = scoped.select(f"{KEPT}.*", message.alias(_MESSAGE))
    room = pipeline.max_payload_bytes
    is_large = F.lit(False) if room is None else F.coalesce(F.octet_length(_MESSAGE) > room, F.lit(False))
    judged = observe_withheld(made.withColumn(WITHHELD, ~F.col("deleted") & is_large))
    made = judged.withColumn("deleted", F.col("deleted") | F.col(WITHHELD))
    payload = F.when(~F.col("deleted"), F.col(_MESSAGE))
    record = encode_record(F.lit(epoch).cast("long"), F.col("sequence"), F.col("source"), payload, functions)
    return made.select("key", "deleted", record.alias("record"), LETTER)


def _lines(changes: DataFrame, side: int, reader: JoinSide, functions: Functions) -> DataFrame:
    return changes.select(
        F.coalesce(letter_key(), F.col("key").cast("string")).alias("key"),
        F.lit(side).alias("side"),
        "epoch",
        "sequence",
        F.when(F.col("after").isNotNull(), F.col("payload")).alias("payload"),
        encode_source(F.col("change.source"), functions).alias("source"),
        F.unix_micros("change.source.commit_time").alias("committed"),
        clock(reader).alias("time"),
        LETTER,
    )


def _row(payload: Column, message: str, functions: Functions) -> Column:
    """The row of an encoded one that was sound when it came; the query ends if its message has changed since."""
    decoded = functions.decode_row(payload, message)
    problem = decoded.getField("problem")
    return F.when(problem.isNull(), decoded.getField("row")).otherwise(F.raise_error(problem))
