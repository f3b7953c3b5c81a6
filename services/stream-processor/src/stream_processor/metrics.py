"""The metrics of the stream-processor, all of which begin with stream_processor_, and its readiness.

Counts of a real-time query move at its checkpoints, not with each record: that is when Spark reports them.
"""

from collections.abc import Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from statecast_service.health import register_build

LAG_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """One set of metrics on one registry; `query` is a pipeline's name or a dead-letter topic's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        register_build(registry, "stream-processor")
        gauge = partial(Gauge, namespace="stream_processor", registry=registry)
        counter = partial(Counter, namespace="stream_processor", registry=registry)
        histogram = partial(Histogram, namespace="stream_processor", registry=registry)
        query = ["query"]
        self.ready = gauge("ready", "1 while /readyz says so, else 0")
        # A real-time query holds all of its tasks for good.
        self.tasks = gauge("running_tasks", "Spark tasks that run now", query)
        self.slots = gauge("task_slots", "Task slots that the queries need")
        # Of the directories that are followed: wrong, without their topics, or without slots.
        self.refused_files = gauge("refused_files", "Pipeline files that have come and are not run; the log says why")
        # Real-time mode: one per checkpoint interval. Micro-batch mode: one per batch with data.
        self.checkpoints = counter("checkpoints", "Committed batches", query)
        self.checkpoint_seconds = gauge("checkpoint_seconds", "From a batch's last record to its commit", query)
        # To plan, load state and commit, while records wait.
        self.checkpoint_pause = gauge(
            "checkpoint_pause_seconds", "What the last real-time batch took beyond its time", query
        )
        self.last_checkpoint = gauge(
            "last_checkpoint_timestamp_seconds", "Time of the last checkpoint, in seconds since 1970", query
        )
        self.query_up = gauge("query_up", "1 while the query is active; 0 when it has failed or stands still", query)
        # After each it is started again, until there were too many in a row.
        self.query_failures = counter("query_failures", "Times that the query has ended by itself", query)
        self.input_rows = counter("input_rows", "Source records read, also those that become dead letters", query)
        self.input_rate = gauge("input_rows_per_second", "Source records read a second, over the last batch", query)
        # Each record that was read ends in one of them (docs/glossary.md), so their sum is the records read.
        self.records = counter("records", "Records read, by how they have ended", ["pipeline", "outcome"])
        # Without the first snapshot and incremental ones. Rows that were deleted in between are in none, and stay.
        self.snapshot_rows = counter(
            "snapshot_rows", "Rows read by a snapshot where there were rows from before", ["pipeline"]
        )
        # It is in the state, and written once it fits again.
        self.withheld_results = counter(
            "withheld_results", "Results that their topic or field cannot hold: a tombstone is written", ["pipeline"]
        )
        self.truncated_rows = counter("truncated_rows", "Rows that left because their table was truncated", query)
        self.ended_windows = counter("ended_windows", "Windows that were deleted, `window.keep` after their end", query)
        # Committed in time, and read when other partitions were far ahead. A change counts once for each such window.
        self.late_window_changes = counter("late_window_changes", "Changes of windows that had ended", query)
        # Counted by the sink's end offsets at each look.
        self.output_rows = counter("output_rows", "Records written; what came twice counts twice", query)
        # From the source's commit to Spark's producer, at most MAX_SAMPLE of a partition at each look, so its count is
        # not the count of records. Also moves between checkpoints.
        self.lag = histogram(
            "lag_seconds", "Age of changes when they are written, of a sample", query, buckets=LAG_BUCKETS
        )
        self.state_rows = gauge("state_rows", "Keys held in state", query)
        self.state_bytes = gauge("state_memory_bytes", "Memory of all state stores of the query", query)
        # Counted up to the end of the partition; a transaction that hangs holds back its partition alone.
        self.waiting_records = gauge("waiting_records", "Source records behind an open transaction", ["topic"])
        # Since the first start, or since they were accepted.
        self.dead_letters = gauge("dead_letters", "Dead letters that count against the limit", ["topic"])

    def remove(self, query: str) -> None:
        """Shows nothing of the query any more."""
        for metric in [each for each in vars(self).values() if isinstance(each, MetricWrapperBase)]:
            labels = {label for family in metric.collect() for sample in family.samples for label in sample.labels}
            for label in labels & {"query", "pipeline"}:
                metric.remove_by_labels({label: query})


class Readiness:
    """Why the service is not ready; None when it is. One thread writes, others read.

    `notes` are lines about pipelines that do not run. They do not make the service unready: the others work.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.reason: str | None = "starting"
        self.notes: Sequence[str] = ()

    def report(self, reason: str | None) -> None:
        """Answers /readyz with 503 and this reason from now on, or with 200 if there is none."""
        self.reason = reason
        self._metrics.ready.set(reason is None)
