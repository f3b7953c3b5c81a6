"""The metrics of the stream-processor, all of which begin with stream_processor_.

Counts of a real-time query move at its checkpoints, not with each record: that is when Spark tells them.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LAG_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """One set of metrics on one registry; `query` is a pipeline's name or a dead-letter topic's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        # 1 while /readyz says so, else 0.
        self.ready = Gauge("stream_processor_ready", "Whether all queries run", registry=registry)
        # Tasks that run now; a real-time query holds all of its tasks for good.
        self.tasks = Gauge("stream_processor_running_tasks", "Spark tasks that run", ["query"], registry=registry)
        # What the master must offer.
        self.slots = Gauge("stream_processor_task_slots", "Task slots that the queries need", registry=registry)
        # Real-time mode: one per checkpoint interval. Micro-batch mode: one per batch with data.
        self.checkpoints = Counter("stream_processor_checkpoints", "Committed batches", ["query"], registry=registry)
        # From the end of the last record of a batch to its commit: what a checkpoint costs.
        self.checkpoint_seconds = Gauge(
            "stream_processor_checkpoint_seconds", "Duration of the last checkpoint", ["query"], registry=registry
        )
        # What a real-time batch took beyond its time, to plan, load state and commit, while records wait.
        self.checkpoint_pause = Gauge(
            "stream_processor_checkpoint_pause_seconds", "Pause at the last checkpoint", ["query"], registry=registry
        )
        # Seconds since 1970; time() minus it is the age of the last progress.
        self.last_checkpoint = Gauge(
            "stream_processor_last_checkpoint_timestamp_seconds",
            "Time of the last checkpoint",
            ["query"],
            registry=registry,
        )
        # 0 once it has ended, shortly before the process ends for that.
        self.query_up = Gauge("stream_processor_query_up", "Whether the query is active", ["query"], registry=registry)
        # Source records read, also those that become dead letters.
        self.input_rows = Counter("stream_processor_input_rows", "Source records read", ["query"], registry=registry)
        # Over the last batch.
        self.input_rate = Gauge(
            "stream_processor_input_rows_per_second", "Source records read a second", ["query"], registry=registry
        )
        # Records on the sink, counted by its end offsets at each look: what came twice counts twice.
        self.output_rows = Counter("stream_processor_output_rows", "Records written", ["query"], registry=registry)
        # From the source's commit to Spark's producer, of a sample of a keyed topic's newest records: at most 50 of a
        # partition at each look, so its count is not the count of records. Also moves between checkpoints.
        self.lag = Histogram(
            "stream_processor_lag_seconds",
            "Age of changes when they are written",
            ["query"],
            buckets=LAG_BUCKETS,
            registry=registry,
        )
        self.state_rows = Gauge("stream_processor_state_rows", "Keys held in state", ["query"], registry=registry)
        # Of all state stores of the query.
        self.state_bytes = Gauge(
            "stream_processor_state_memory_bytes", "Memory of the state stores", ["query"], registry=registry
        )
        # Those that count against the limit: since the first start, or since they were accepted.
        self.dead_letters = Gauge(
            "stream_processor_dead_letters", "Dead letters that are not accepted", ["topic"], registry=registry
        )
