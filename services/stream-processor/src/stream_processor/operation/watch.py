"""Watches the running queries: whether they run, what they do, and whether one has ended."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import StatusTracker
from pyspark.sql.streaming.query import StreamingQuery

from stream_processor.errors import QueryFailedError
from stream_processor.metrics import Metrics
from stream_processor.operation.health import Readiness
from stream_processor.operation.plan import QueryPlan
from stream_processor.operation.progress import Progress


class Tasks(Protocol):
    """Tells how many tasks of a query run now."""

    def running(self, query: StreamingQuery) -> int:
        """The number of tasks that an executor has started and not ended."""


class SparkTasks:
    """Asks Spark's status store, which knows the jobs of a query by its run id."""

    def __init__(self, tracker: StatusTracker) -> None:
        self._tracker = tracker

    def running(self, query: StreamingQuery) -> int:
        """See Tasks."""
        active = set(self._tracker.getActiveJobsIds())
        own = active.intersection(self._tracker.getJobIdsForGroup(str(query.runId)))
        jobs = [self._tracker.getJobInfo(job) for job in own]
        stages = [self._tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage is not None)


class WatchedQuery:
    """One query with what is known of it.

    A real-time query has started once all its tasks ran at the same time; a micro-batch query, once it has finished a
    batch or waits for data. Between two real-time batches the tasks end and start again, which is no second start.
    """

    def __init__(self, plan: QueryPlan, query: StreamingQuery, tasks: Tasks, metrics: Metrics) -> None:
        self.plan = plan
        self.query = query
        self.started = False
        self._tasks = tasks
        self._metrics = metrics
        interval_s = plan.trigger.checkpoint.total_seconds() if plan.realtime else 0.0
        self._progress = Progress(plan.name, metrics, interval_s)

    def look(self) -> None:
        """Updates `started` and the metrics. Raises QueryFailedError when the query, or all of Spark, has ended."""
        try:
            self._look()
        except (Py4JError, OSError) as error:
            raise QueryFailedError("Spark's JVM has ended; its own last words are above") from error

    def _look(self) -> None:
        active = self.query.isActive
        self._metrics.query_up.labels(self.plan.name).set(active)
        if not active:
            raise QueryFailedError(f"the query {self.plan.name} has ended: {_reason(self.query)}")
        running = self._tasks.running(self.query)
        self._metrics.tasks.labels(self.plan.name).set(running)
        self._follow(self.query.lastProgress)
        self.started = self.started or self._has_started(running)

    def _follow(self, last: Mapping[str, Any] | None) -> None:
        """Asks for the batches in between only if there are any: all of the recent ones are a lot of text."""
        if last is None or not self._progress.is_news(last):
            return
        for each in [last] if self._progress.follows(last) else self.query.recentProgress:
            self._progress.tell(each)

    def _has_started(self, running: int) -> bool:
        if self.plan.realtime:
            return running >= self.plan.tasks
        return self.query.lastProgress is not None or self.query.status["message"].startswith("Waiting")


def look_at_all(queries: Sequence[WatchedQuery], readiness: Readiness) -> None:
    """Looks at each query; ready when all have started. Raises QueryFailedError."""
    for each in queries:
        each.look()
    waiting = [each.plan.name for each in queries if not each.started]
    if waiting:
        readiness.is_not(f"starting {', '.join(waiting)}")
    elif readiness.reason is not None:
        readiness.is_ready()


def _reason(query: StreamingQuery) -> str:
    error = query.exception()
    text = "it was stopped" if error is None else str(error)
    first = next((line for line in text.splitlines() if line.strip()), text)
    return first.partition("terminated with exception: ")[2] or first
