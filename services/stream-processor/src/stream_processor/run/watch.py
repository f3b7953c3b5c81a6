"""Watches the running queries: whether each runs, and Spark's reports of it as metrics."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from pyspark.sql.streaming.query import StreamingQuery

from stream_processor.errors import QueryFailedError, SparkLostError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.run.failures import failure_of
from stream_processor.run.plan import QueryPlan
from stream_processor.run.snapshots import Snapshots
from stream_processor.spark_internals import JVM_LOST
from stream_processor.steps.outcomes import NEWER, STATE, WITHHELD, counted, observed
from stream_processor.steps.windows import WINDOWS

log = structlog.get_logger()

_JVM_ENDED = "Spark's JVM has ended; its own last words are above"
BACKWARDS = "records were left out by their place, although their time is newer"
ANOTHER_LOG = (
    "the log began anew or another one goes on; raise source.epoch and have the tables read again by a snapshot"
)
TWO_PARTITIONS = "a key comes on two partitions, whose offsets tell no order; give all producers one partitioner"
TOO_LARGE = "results are withheld, which their topic or their field cannot hold; their keys have tombstones"
COMMIT_STEPS = ("walCommit", "commitOffsets")

Ends = Mapping[int, int]
"""The end offset of each partition of a topic."""


def _checkpoint_ms(progress: Mapping[str, Any]) -> float:
    """Returns the time of the write-ahead and commit logs, and of the stores' commits, parallel in the partitions."""
    logs = sum(progress["durationMs"].get(step, 0) for step in COMMIT_STEPS)
    stores = sum(each["commitTimeMs"] / max(each["numShufflePartitions"], 1) for each in progress["stateOperators"])
    return float(logs + stores)


def _end_offsets(progress: Mapping[str, Any]) -> dict[str, dict[int, int]]:
    """Returns where the batch ended in its sources, each a topic; nothing of one of which Spark does not say."""
    ends = [json.loads(source["endOffset"]) or {} for source in progress["sources"]]
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topics in ends
        for topic, partitions in topics.items()
    }


@contextmanager
def living_spark() -> Iterator[None]:
    """Raises SparkLostError when Spark's JVM has ended, which any call of the block shows."""
    try:
        yield
    except JVM_LOST as error:
        raise SparkLostError(_JVM_ENDED) from error


@dataclass
class WatchedQuery:
    """One query and the facts known of it; `clock` gives seconds since 1970.

    A real-time query has started once all its tasks ran at the same time; a micro-batch query, once it has finished a
    batch or waits for data. Between two real-time batches the tasks end and start again, which is no second start.
    """

    plan: QueryPlan
    query: StreamingQuery
    metrics: Metrics
    snapshots: Snapshots = field(default_factory=Snapshots)
    clock: Callable[[], float] = time.time
    begun_s: float = 0.0
    """When it was started, by the clock of Starts."""
    started: bool = field(default=False, init=False)
    checkpointed: Mapping[str, Ends] = field(default_factory=dict, init=False)
    """The offset of each partition of a source at which a replay would begin, by the last checkpoint of this run."""
    checkpointed_at: float | None = field(default=None, init=False)
    input_rate: float = field(default=0.0, init=False)
    """Records read a second, over the last batch: Spark's own rate is against the pause before it."""
    state_rows: int = field(default=0, init=False)
    _batch: int = field(default=-1, init=False)

    def has_checkpointed(self, sources: Mapping[str, Ends]) -> bool:
        """Returns whether the last checkpoint of this run holds the sources up to these ends."""
        return all(
            self.checkpointed.get(topic, {}).get(partition, 0) >= end
            for topic, ends in sources.items()
            for partition, end in ends.items()
        )

    def failure(self) -> QueryFailedError | None:
        """Returns why the query has ended, None while it is active. Raises SparkLostError when Spark has ended."""
        with living_spark():
            if self.query.isActive:
                return None
            error = self.query.exception()
            return QueryFailedError("it was stopped") if error is None else failure_of(error)

    def look(self, tasks: int) -> None:
        """Updates `started` and the metrics; of a query that has ended, nothing but that it is not up.

        `tasks` is how many of it executors have started and not ended. Raises SparkLostError when all of Spark has
        ended.
        """
        with living_spark():
            active = self.query.isActive
            self.metrics.query_up.labels(self.plan.name).set(active)
            running = tasks if active else 0
            self.metrics.tasks.labels(self.plan.name).set(running)
            if not active:
                return
            self._follow()
            if self.plan.realtime:
                all_run = running >= self.plan.tasks
            else:
                all_run = self.query.lastProgress is not None or self.query.status["message"].startswith("Waiting")
            self.started = self.started or all_run

    def _follow(self) -> None:
        """Takes the reports that are new. Asks for several only if there are: all recent ones are a lot of text."""
        last = self.query.lastProgress
        if last is None or last["batchId"] <= self._batch:
            return
        for progress in [last] if last["batchId"] == self._batch + 1 else self.query.recentProgress:
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                self._count(progress)

    def _count(self, progress: Mapping[str, Any]) -> None:
        """Turns a StreamingQueryProgress in its JSON form into metrics."""
        operators = progress["stateOperators"]
        self.checkpointed = _end_offsets(progress)
        metrics, query = self.metrics, self.plan.name
        metrics.checkpoints.labels(query).inc()
        metrics.checkpoint_seconds.labels(query).set(_checkpoint_ms(progress) / 1000)
        self.checkpointed_at = self.clock()
        metrics.last_checkpoint.labels(query).set(self.checkpointed_at)
        duration_s = progress["durationMs"].get("triggerExecution", 0) / 1000
        if self.plan.realtime:
            interval_s = self.plan.trigger.checkpoint.total_seconds()
            metrics.checkpoint_pause.labels(query).set(max(duration_s - interval_s, 0.0))
        metrics.input_rows.labels(query).inc(progress["numInputRows"])
        self.input_rate = progress["numInputRows"] / duration_s if duration_s else 0.0
        metrics.input_rate.labels(query).set(self.input_rate)
        self._tell_outcomes(progress)
        self._tell_truncation(progress)
        self._tell_withheld(progress)
        windows = observed(progress, WINDOWS)
        metrics.ended_windows.labels(query).inc(windows.get("ended") or 0)
        metrics.late_window_changes.labels(query).inc(windows.get("late") or 0)
        self.state_rows = sum(operator["numRowsTotal"] for operator in operators)
        metrics.state_rows.labels(query).set(self.state_rows)
        metrics.state_bytes.labels(query).set(sum(operator["memoryUsedBytes"] for operator in operators))

    def _tell_outcomes(self, progress: Mapping[str, Any]) -> None:
        outcomes = counted(progress)
        for outcome, records in outcomes.items():
            self.metrics.records.labels(self.plan.name, outcome).inc(records)
        if backwards := outcomes[NEWER]:
            by_offset = any(each.ordered_by_offset for each in self.plan.pipeline.readers)
            reason = f"{BACKWARDS}: {TWO_PARTITIONS if by_offset else ANOTHER_LOG} (docs/runbook.md)"
            log.warning(reason, pipeline=self.plan.name, records=backwards)
        again = self.snapshots.rows_read_again(self.plan, progress, outcomes["applied"] > 0)
        self.metrics.snapshot_rows.labels(self.plan.name).inc(again)

    def _tell_withheld(self, progress: Mapping[str, Any]) -> None:
        seen = observed(progress, WITHHELD)
        if results := seen.get("results") or 0:
            log.error(TOO_LARGE, pipeline=self.plan.name, results=results, key=seen["key"])
            self.metrics.withheld_results.labels(self.plan.name).inc(results)

    def _tell_truncation(self, progress: Mapping[str, Any]) -> None:
        seen = observed(progress, STATE)
        if seen.get("truncated") is None:
            return
        sequence, rows = seen["truncated"], seen["rows_left"]
        log.warning("the source's table was truncated", query=self.plan.name, sequence=sequence, rows_left=rows)
        self.metrics.truncated_rows.labels(self.plan.name).inc(rows)


def look_at_all(
    queries: Sequence[WatchedQuery],
    tasks: Callable[[], Mapping[str, int]],
    readiness: Readiness,
    held: Sequence[str] = (),
) -> None:
    """Looks at each query. Ready from when all have started until none runs; one that starts later holds nobody back.

    `tasks` counts the running tasks of all queries at once, by run id. `held` says why others have not been started
    yet. Raises SparkLostError.
    """
    with living_spark():
        counts = tasks() if queries else {}
    for each in queries:
        each.look(counts.get(str(each.query.runId), 0))
    if queries and readiness.reason is None:
        return
    waiting = [each.plan.name for each in queries if not each.started]
    if waiting:
        readiness.report(f"starting {', '.join(waiting)}")
    elif held:
        readiness.report("; ".join(held))
    elif queries:
        readiness.report(None)
    else:
        readiness.report("no query runs")
