"""Adds a route's running totals: the sums of a group's rows at each record that is passed on.

Records are written at least once, and those that come again after a crash are the same: Spark writes down what a
micro-batch takes before it begins, and within a batch the log decides on the order (RunningTotals.java). Real-time mode
has no such batches, so it is refused for these (ADR 0032).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import TotalsPipeline
from stream_processor.spark_internals import running_totals
from stream_processor.steps.aggregation import difference, is_beyond, numbers, paired
from stream_processor.steps.contributions import parts_of
from stream_processor.steps.dead_letters import LETTER, explode_groups, is_letter
from stream_processor.steps.decode import INSERTS
from stream_processor.steps.functions import Functions, filled
from stream_processor.steps.outcomes import WITHHELD, observe_withheld

WHEN_NEW = "when_new"
"""A column: whether a record is passed on only if the row was not in its group before."""


def mark_told(changes: DataFrame, pipeline: TotalsPipeline) -> DataFrame:
    """Takes `payload` away where the change's operation is not among the route's, and adds WHEN_NEW."""
    operation = F.col("change.operation")
    payload = F.when(operation.isin(*pipeline.operations), F.col("payload"))
    return changes.withColumns({"payload": payload, WHEN_NEW: operation.isin(*INSERTS)})


def running_lines(known: DataFrame, pipeline: TotalsPipeline) -> DataFrame:
    """One line per group that an applied change touches: the added numbers, and the `payload` of a record to pass on.

    A row that a snapshot reads again is in its group already: that is no new row, and nobody is told of it.
    """
    parts = parts_of(pipeline.aggregates)
    nothing = F.filter("current", lambda _: F.lit(False))
    pairs = paired(F.coalesce(F.col("previous"), nothing), F.col("current"))

    def line(pair: Column) -> Column:
        tells = pair.getField("entered").isNotNull() & (~F.col(WHEN_NEW) | pair.getField("left").isNull())
        payload = F.when(tells, F.col("payload")).alias("payload")
        return F.struct(pair.getField("key").alias("key"), *difference(pair, parts), payload)

    applied = known.where(F.col("applied") | is_letter())
    return explode_groups(applied, F.transform(pairs, line), ["primary_key", "epoch", "sequence"])


def total_records(lines: DataFrame, pipeline: TotalsPipeline, functions: Functions) -> DataFrame:
    """The records to pass on: `key`, the group as text, and `value`, the result of `select` with the totals behind it.

    A record with a total beyond its field is withheld: there is none. Encoded messages that are laid end to end
    are one message.
    """
    totals = running_totals(lines, ["rows", *(part.name for part in parts_of(pipeline.aggregates))])
    judged = observe_withheld(totals.withColumn(WITHHELD, ~is_letter() & is_beyond(pipeline)))
    message = functions.encode(filled(pipeline.sink, numbers(pipeline)), pipeline.sink.full_name)
    value = F.concat("payload", message).alias("value")
    return judged.where(~F.col(WITHHELD)).select(F.col("key").cast("binary").alias("key"), value, LETTER)
