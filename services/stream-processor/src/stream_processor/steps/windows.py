"""Tells the window of a row's time, and which windows are closed."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.definition.pipeline import Pipeline, Window
from stream_processor.steps.record_keys import NUL, RFC3339, at

RFC3339_LENGTH = 27
HORIZON = "window_horizon"
"""A column of text: windows that end before it are closed to the change. Null when the source gives no commit time."""


def bounds(row: Column, window: Window) -> Sequence[Column]:
    """The texts of start and end of the window that the row's time is in; a time at the end is in the next."""
    micros = F.unix_micros(at(row, window.time))
    size = round(window.size.total_seconds() * 1_000_000)
    start = micros - F.pmod(micros, F.lit(size))
    return [F.date_format(F.timestamp_micros(each), RFC3339) for each in (start, start + size)]


def window_tail(row: Column, window: Window | None) -> Column:
    """What a key has behind its group: start and end of the window, or nothing."""
    if window is None:
        return F.lit("")
    start, end = bounds(row, window)
    return F.concat(F.lit(NUL), start, F.lit(NUL), end)


def check_windows(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Sets `problem` where a row has no window, or one that was closed when the change was committed; adds the HORIZON.

    A window closes `lateness` after its end by the source's clock, so that the answer rests on the change alone. It is
    final then: a change whose row stands in it, before or after, is set aside whole.
    """
    window = pipeline.window
    if window is None:
        return changes
    lateness = F.lit(round(window.lateness.total_seconds() * 1_000_000))
    committed = F.unix_micros(F.col("change.source.commit_time"))
    horizon = F.date_format(F.timestamp_micros(committed - lateness), RFC3339)
    problems = [_problem(row, window, horizon) for row in ("before", "after")]
    return changes.withColumns({"problem": F.coalesce(F.col("problem"), *problems), HORIZON: horizon})


def still_open(key: Column) -> Column:
    """Whether the window that the key ends with is open to the line's change."""
    return F.coalesce(F.right(key, F.lit(RFC3339_LENGTH)) >= F.col(HORIZON), F.lit(True))


def _problem(row: str, window: Window, horizon: Column) -> Column:
    name, value = f"{row}.{window.time}", at(F.col(row), window.time)
    _, end = bounds(F.col(row), window)
    too_late = F.concat(F.lit(f"too late: the window of {name} ended at "), end)
    return F.when(
        F.col(row).isNotNull(),
        F.coalesce(
            F.when(value.isNull(), f"{name} is empty, a window needs it"),
            F.when(end < horizon, too_late),
        ),
    )
