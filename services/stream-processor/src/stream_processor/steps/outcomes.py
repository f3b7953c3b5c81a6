"""Counts how each record that a pipeline reads has ended, in the progress of its query.

Each ends in one of OUTCOMES, once: as it is read, or behind the state, which knows the row's last change.
docs/glossary.md defines them.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.dead_letters import is_letter
from stream_processor.steps.keys import MARK, is_in_a_group
from stream_processor.steps.log_positions import INCREMENTAL
from stream_processor.steps.projection import KEY_MATCHES

NEWER = "superseded_newer"
IN_STATE = ("applied", "filtered", "duplicate", "superseded", NEWER)
"""The fields of the column `outcomes` that the operators of the state give (Outcomes.java)."""
AS_READ = ("applied", "filtered", "set_aside", "passed_over")
"""The outcomes that are known without a state."""
OUTCOMES = (*IN_STATE, "set_aside", "passed_over")
READ, STATE = "read", "state"
"""Names of the observations in a query's progress: of each source, with its number behind, and of the state."""
_OUTCOME, _SNAPSHOT, _CHANGE = "__outcome", "__snapshot_place", "__change_place"
"""Columns: how a record has ended before the state, null if only that knows; the place of a row that a snapshot has
read, without incremental ones; and that of a change."""
_IN_STATE, _TRUNCATED, _LEFT = "outcomes", "__truncated", "__row_left"
"""Columns: the outcomes that an operator of the state gives; a truncation's sequence; and whether a row left by it."""
WITHHELD = "withheld"
"""A column, and the observation of it: whether a result cannot be written, and a tombstone stands in its place.

Its change is in the state, so it can be no dead letter; and an older result would pass for the present one.
"""


def with_outcome(checked: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds the columns of a change that observe_read needs, so that later steps may drop the change."""
    places = {}
    if pipeline.definition.source.format == "debezium-json":
        is_change = F.col("change").isNotNull() & F.col("problem").isNull()
        is_read, place = is_change & (F.col("snapshot") != INCREMENTAL), F.abs("sequence")
        places = {_SNAPSHOT: F.when(is_read, place), _CHANGE: F.when(is_change & F.col("snapshot").isNull(), place)}
    return checked.withColumns({_OUTCOME: _outcome(pipeline), **places})


def outcome_columns(lines: DataFrame) -> list[str]:
    """Returns the names of the columns that with_outcome has added to the lines."""
    return [name for name in (_OUTCOME, _SNAPSHOT, _CHANGE) if name in lines.columns]


def observe_read(lines: DataFrame, number: int = 0) -> DataFrame:
    """Lets the progress tell the outcomes of a source's records before the state; returns sound changes and letters.

    Spark's operator copies each line, so the lines should have few columns. Of a record's lines, if there are several,
    one is `counted`.
    """
    is_counted = F.col("counted") if "counted" in lines.columns else F.lit(True)
    counts = [_count(is_counted & (F.col(_OUTCOME) == each)).alias(each) for each in AS_READ]
    if _SNAPSHOT in lines.columns:
        counts += [
            _count(is_counted & F.col(_SNAPSHOT).isNotNull()).alias("snapshot_rows"),
            F.min(_SNAPSHOT).alias("snapshot_first"),
            F.max(_SNAPSHOT).alias("snapshot_last"),
            F.min(_CHANGE).alias("change_first"),
        ]
    observed_lines = lines.observe(f"{READ}{number}", *counts)
    goes_on = F.col(_OUTCOME).isNull() | (F.col(_OUTCOME) == "applied") | is_letter()
    return observed_lines.where(goes_on).drop(*outcome_columns(lines))


def with_truncation(known: DataFrame) -> DataFrame:
    """Adds the columns of the lines behind the state that observe_state needs, beside `outcomes`."""
    lines = F.col("primary_key").startswith(MARK) & F.col("applied")
    return known.withColumns(
        {_TRUNCATED: F.when(lines, F.col("sequence")), _LEFT: F.when(lines, F.size("previous") > 0)}
    )


def state_columns(lines: DataFrame) -> list[str]:
    """Returns the names of the columns that observe_state needs and the lines have."""
    return [name for name in (_IN_STATE, _TRUNCATED, _LEFT) if name in lines.columns]


def observe_state(lines: DataFrame) -> DataFrame:
    """Lets the progress tell the outcomes that the state has found, and of truncations; as narrow as observe_read.

    Of these it tells `truncated`, the highest `sequence` of a batch's truncations, null if none, and how many
    `rows_left`.
    """
    counts = [F.sum(f"{_IN_STATE}.{each}").alias(each) for each in IN_STATE]
    if _TRUNCATED in lines.columns:
        counts += [F.max(_TRUNCATED).alias("truncated"), _count(F.col(_LEFT)).alias("rows_left")]
    return lines.observe(STATE, *counts).drop(*state_columns(lines))


def observe_withheld(results: DataFrame) -> DataFrame:
    """Lets the progress tell how many of the lines are WITHHELD, and a key of them."""
    key = F.max(F.when(F.col(WITHHELD), F.col("key")))
    return results.observe(WITHHELD, _count(F.col(WITHHELD)).alias("results"), key.alias("key"))


def _count(condition: Column) -> Column:
    # Spark's count_if adds a column to each line.
    return F.count(F.when(condition, F.lit(1)))


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
    """Returns whether a change that no state knows counts: it has a row that the pipeline passes on, or a group."""
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
