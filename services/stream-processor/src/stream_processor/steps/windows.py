"""Splits the groups of an aggregate by a time of the row: the windows of a row, closed ones, and those that have ended.

A window closes `lateness` after its end, by the commit time of each change alone: later changes are set aside. It ends
`keep` after its end, by a clock of the whole source, and its record and its state go (ADR 0046).
"""

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Window
from stream_processor.steps.keys import FIRST_TIME, LAST_TIME, NUL, RFC3339, at

RFC3339_LENGTH = 27
BEYOND_YEARS = "that begins before the year 1 or ends after 9999, and a key has no text for it"
HORIZON = "window_horizon"
"""A column of text: windows that end before it are closed to the change. Null when the source gives no commit time."""
CLOCK = "window_clock"
"""A column: the time of the source by which windows end. Null when the source gives no commit time."""
WINDOWS = "windows"
"""The observation, in a query's progress, of windows that have `ended`, and of lines that came too `late` for one."""


def _last_start(row: Column, window: Window) -> Column:
    """Returns the start, in microseconds, of the last window of the row's time; a time at an end is in the next."""
    micros = F.unix_micros(at(row, window.time))
    return micros - F.pmod(micros, F.lit(_micros(window.hop)))


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _time_text(micros: Column) -> Column:
    return F.date_format(F.timestamp_micros(micros), RFC3339)


def window_tails(row: Column, window: Window) -> Column:
    """Returns the ends of keys behind the row's group: start and end of each window that it is in.

    A row without the time is in none.
    """
    size, hop, last = _micros(window.size), _micros(window.hop), _last_start(row, window)
    starts = F.array(last) if size == hop else F.sequence(last - (size - hop), last, F.lit(hop))
    tails = F.transform(
        starts, lambda start: F.concat(F.lit(NUL), _time_text(start), F.lit(NUL), _time_text(start + size))
    )
    return F.when(last.isNotNull(), tails).otherwise(F.array().cast("array<string>"))


def check_windows(changes: DataFrame, window: Window | None) -> DataFrame:
    """Sets `problem` where a row has no window, or one that was closed when the change was committed.

    Adds HORIZON, and CLOCK where windows end.

    A window closes `lateness` after its end by the source's clock, so that the answer rests on the change alone. It is
    final then: a change with a row in it, before or after, is set aside whole.
    """
    if window is None:
        return changes
    lateness = F.lit(round(window.lateness.total_seconds() * 1_000_000))
    committed = F.unix_micros("change.source.commit_time")
    horizon = F.date_format(F.timestamp_micros(committed - lateness), RFC3339)
    problems = [_window_problem(row, window, horizon) for row in ("before", "after")]
    checked = changes.withColumns({"problem": F.coalesce("problem", *problems), HORIZON: horizon})
    return checked if window.keep is None else checked.withColumn(CLOCK, _clock())


def _clock() -> Column:
    """Returns the commit time, or the record's where that is earlier: one row with a wrong time must end no window."""
    committed = F.col("change.source.commit_time")
    return F.when(committed.isNotNull(), F.least(committed, F.col("timestamp")))


def still_open(key: Column) -> Column:
    """Returns whether the window that the key ends with is open to the line's change."""
    return F.coalesce(F.right(key, F.lit(RFC3339_LENGTH)) >= F.col(HORIZON), F.lit(True))


def _window_problem(row: str, window: Window, horizon: Column) -> Column:
    name, value = f"{row}.{window.time}", at(F.col(row), window.time)
    last, hop = _last_start(F.col(row), window), _micros(window.hop)
    # Of windows that overlap, the first one that the row is in closes first.
    end = _time_text(last + hop)
    too_late = F.concat(F.lit(f"too late: the window of {name} ended at "), end)
    missing = F.when(value.isNull(), f"{name} is empty, a window needs it") if row == "after" else F.lit(None)
    # Times of a source may be far beyond, where a sum of them is beyond an integer: they are compared first.
    size = _micros(window.size)
    in_years = F.unix_micros(value).between(FIRST_TIME, LAST_TIME) & (last - (size - hop) >= FIRST_TIME)
    beyond = F.when(~(in_years & (last + size <= LAST_TIME)), f"{name} is in a window {BEYOND_YEARS}")
    return F.when(F.col(row).isNotNull(), F.coalesce(missing, beyond, F.when(end < horizon, too_late)))


def columns_of(window: Window | None) -> list[str]:
    """Returns the columns of check_windows that a change needs behind the state."""
    if window is None:
        return []
    return [HORIZON] if window.keep is None else [HORIZON, CLOCK]


def follow_clock(known: DataFrame, window: Window | None) -> DataFrame:
    """Sets the query's watermark to the highest CLOCK of all partitions, `keep` before it, where windows end at all."""
    if window is None or window.keep is None:
        return known
    return known.withWatermark(CLOCK, f"{window.keep // timedelta(milliseconds=1)} milliseconds")


def observe_late(sums: DataFrame) -> DataFrame:
    """Returns the sums of windows that end without the lines that came too late: the progress tells those.

    A line is too late when its window has ended. That is one of a change that was committed in time, and was read when
    changes of other partitions were later by more than `keep` is longer than `lateness`.
    """
    ended = F.count_if("ended").alias("ended")
    return sums.observe(WINDOWS, ended, F.sum("late").alias("late")).where(F.col("late") == 0)
