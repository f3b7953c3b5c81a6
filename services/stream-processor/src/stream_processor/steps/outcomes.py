"""Counts how each record that a pipeline reads has ended, in the progress of its query.

Each ends in one of OUTCOMES, once: as it is read, or behind the state, which knows the row's last change.
docs/glossary.md defines them.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.keys import MARK, is_in_a_group
from stream_processor.steps.log_positions import INCREMENTAL
from stream_processor.steps.projection import KEY_MATCHES

NEWER = "superseded_newer"
IN_STATE = ("applied", "filtered", "duplicate", "superseded", NEWER)
"""The fields of the column `outcomes` that the operators of the state give (Outcomes.java)."""
OUTCOMES = (*IN_STATE, "set_aside", "passed_over")
READ, STATE = "read", "state"
"""Names of the observations in a query's progress: of each source, with its number behind, and of the state."""
WITHHELD = "withheld"
"""A column, and the observation of it: whether a result cannot be written, and a tombstone stands in its place.

Its change is in the state, so it can be no dead letter; and an older result would pass for the present one.
"""


def observe_read(checked: DataFrame, pipeline: Pipeline, number: int) -> DataFrame:
    """Lets the progress tell the outcomes that are known of the records of a source before the state."""
    outcome = _outcome(pipeline)
    counts = [F.count_if(outcome == each).alias(each) for each in OUTCOMES]
    return checked.observe(f"{READ}{number}", *counts, *_snapshot_counts())


def _snapshot_counts() -> list[Column]:
    """Counts the rows that snapshots have read, without incremental ones; finds their places and the first change's."""
    is_change = F.col("change").isNotNull() & F.col("problem").isNull()
    is_read = is_change & (F.col("snapshot") != INCREMENTAL)
    place = F.abs("sequence")
    return [
        F.count_if(is_read).alias("snapshot_rows"),
        F.min(F.when(is_read, place)).alias("snapshot_first"),
        F.max(F.when(is_read, place)).alias("snapshot_last"),
        F.min(F.when(is_change & F.col("snapshot").isNull(), place)).alias("change_first"),
    ]


def state_counts() -> list[Column]:
    """Returns the counts of the outcomes that the state has found, for an observation of the lines behind it."""
    return [F.sum(f"outcomes.{each}").alias(each) for each in IN_STATE]


def truncation_counts() -> list[Column]:
    """Returns the counts of truncations, for an observation of the lines behind the state.

    These are `truncated`, the highest `sequence` of a batch's truncations, null if none, and how many `rows_left`.
    """
    lines = F.col("primary_key").startswith(MARK) & F.col("applied")
    return [
        F.max(F.when(lines, F.col("sequence"))).alias("truncated"),
        F.count_if(lines & (F.size("previous") > 0)).alias("rows_left"),
    ]


def observe_withheld(results: DataFrame) -> DataFrame:
    """Lets the progress tell how many of the lines are WITHHELD, and a key of them."""
    key = F.max(F.when(F.col(WITHHELD), F.col("key")))
    return results.observe(WITHHELD, F.count_if(WITHHELD).alias("results"), key.alias("key"))


def counted(progress: Mapping[str, Any]) -> dict[str, int]:
    """Returns the outcomes of a batch's records by its progress; their sum is the number of records that were read."""
    tells = [observed(progress, name) for name in progress.get("observedMetrics") or {}]
    return {name: sum(each.get(name) or 0 for each in tells) for name in OUTCOMES}


def observed(progress: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns the progress's observation of a name; an empty one when the progress has none."""
    seen = (progress.get("observedMetrics") or {}).get(name)
    if seen is None or isinstance(seen, Mapping):
        return seen or {}
    row: Mapping[str, Any] = seen.asDict()
    return row


def passes(pipeline: Pipeline) -> Column:
    """Whether a change that no state knows counts: it has a row that the pipeline passes on, or a group."""
    return pipeline.passes(F.coalesce(is_in_a_group(F.col("after"), pipeline), F.lit(False)))


def clock(pipeline: Pipeline) -> Column:
    """Returns the time, in microseconds, by which a change at a lower place is found to be newer.

    It is null where it tells nothing. A row that an incremental snapshot has read has the time of the reading, and may
    be older than a change before it. A keyed topic's records have the time of one of their changes, and a pipeline may
    write them in another order anew.
    """
    time = F.unix_micros("change.source.commit_time")
    if pipeline.table is not None and not pipeline.ordered_by_offset:
        return F.lit(None).cast("bigint")
    return F.when(~F.coalesce(F.col("snapshot") == INCREMENTAL, F.lit(False)), time)


def _outcome(pipeline: Pipeline) -> Column:
    wrong: Column | str = F.lit("set_aside")
    if pipeline.definition.where_key is not None:
        # A record with another key is of no use to the pipeline anyway, so it is none of its dead letters.
        wrong = F.when(F.col(KEY_MATCHES), "set_aside").otherwise("filtered")
    outcome = F.when(F.col("passed_over").isNotNull(), "passed_over").when(F.col("problem").isNotNull(), wrong)
    if not pipeline.knows_rows:
        outcome = outcome.when(~passes(pipeline), "filtered")
        # Which of them are duplicates the state knows.
        outcome = outcome if pipeline.deduplicate is not None else outcome.otherwise("applied")
    return outcome
