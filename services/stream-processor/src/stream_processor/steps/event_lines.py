"""Adds events up: nothing is ever taken back, so that no state tells what a row was before.

The state has an entry per key of the sink at most, and one per id where events may come twice. It is part of the
checkpoint, as the offsets are: each record counts once (ADR 0044).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import AggregatePipeline, KeyPipeline, Pipeline
from stream_processor.spark_internals import deduplicate
from stream_processor.steps.aggregation import signed
from stream_processor.steps.contributions import parts_of
from stream_processor.steps.dead_letters import LETTER, explode_groups, is_letter, letter_key
from stream_processor.steps.functions import Functions
from stream_processor.steps.keyed_topic import encode_record, encode_source
from stream_processor.steps.outcomes import STATE, passes, state_counts
from stream_processor.steps.record_keys import event_time, key_text, keys
from stream_processor.steps.running_totals import WHEN_NEW


def first_events(events: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Returns the events that match, without those that repeat one before, which the progress counts. Letters pass."""
    matching, same = events.where(passes(pipeline) | is_letter()), pipeline.definition.source.deduplicate
    if same is None or pipeline.deduplicate is None:
        return matching
    identity = F.coalesce(letter_key(), key_text(F.col("after"), pipeline.deduplicate))
    identified = matching.withColumns({"identity": identity, "time": event_time(pipeline)})
    known = deduplicate(identified, same.within).observe(STATE, *state_counts())
    return known.where("first").select(*events.columns)


def newest_lines(events: DataFrame, pipeline: KeyPipeline, epoch: int, functions: Functions) -> DataFrame:
    """Returns, per key of the sink with a new event, a line of its newest one, as to_records takes it. Letters pass.

    The newest is the one with the latest time, and of the same time the one with the highest place. The sequence counts
    the key's events, so that it is the same in whichever order they were read: `epoch` is the life of the checkpoint.
    """
    row_keys = keys(F.col("after"), pipeline)
    whole = events.select(
        F.transform(row_keys, lambda key: F.struct(key.alias("key"))).alias("lines"),
        F.struct(event_time(pipeline).alias("time"), F.col("sequence")).alias("place"),
        F.struct("payload", encode_source(F.col("change.source"), functions).alias("source")).alias("row"),
        LETTER,
    )
    groups = explode_groups(whole, F.col("lines"), ["place", "row"]).groupBy("key")
    newest = groups.agg(
        F.max_by("row", "place").alias("row"),
        F.count(F.lit(1)).alias("events"),
        # A letter is a group of its own, which never gets another line.
        F.first(LETTER, ignorenulls=True).alias(LETTER),
    )
    record = encode_record(
        F.lit(epoch).cast("long"), F.col("events"), F.col("row.source"), F.col("row.payload"), functions
    )
    return newest.select("key", F.lit(False).alias("deleted"), record.alias("record"), LETTER)


def added_lines(events: DataFrame, pipeline: AggregatePipeline, functions: Functions) -> DataFrame:
    """Returns a line per group that an event adds to, as `aggregate` takes it; each adds 1 to the group's sequence."""
    parts = parts_of(pipeline.aggregates)
    whole = events.select(
        "epoch",
        "sequence",
        encode_source(F.col("change.source"), functions).alias("source"),
        signed(_nothing(), F.col("current"), parts).alias("lines"),
        LETTER,
    )
    lines = explode_groups(whole, F.col("lines"), ["epoch", "sequence", "source"])
    return lines.withColumn("ticks", F.lit(1).cast("long"))


def as_known(events: DataFrame) -> DataFrame:
    """Returns the events as running_lines takes rows that the state knows: each is new."""
    columns = ("epoch", "sequence", "payload", WHEN_NEW, "current", LETTER)
    new = {"previous": _nothing(), "applied": F.lit(True), "primary_key": F.lit("")}
    return events.select(*columns).withColumns(new)


def _nothing() -> Column:
    return F.filter("current", lambda _: F.lit(False))
