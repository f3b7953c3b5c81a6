"""The metrics of the stream-processor, all of which begin with stream_processor_.

Counts of a real-time query move at its checkpoints, not with each record: that is when Spark tells them.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge


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
        # Source records read, also those that become dead letters.
        self.input_rows = Counter("stream_processor_input_rows", "Source records read", ["query"], registry=registry)
        # Over the last batch.
        self.input_rate = Gauge(
            "stream_processor_input_rows_per_second", "Source records read a second", ["query"], registry=registry
        )
        # One per key that ever was, deleted ones too.
        self.state_rows = Gauge("stream_processor_state_rows", "Keys held in state", ["query"], registry=registry)
        # Of all state stores of the query.
        self.state_bytes = Gauge(
            "stream_processor_state_memory_bytes", "Memory of the state stores", ["query"], registry=registry
        )
        # Those that count against the limit: since the first start, or since they were accepted.
        self.dead_letters = Gauge(
            "stream_processor_dead_letters", "Dead letters that are not accepted", ["topic"], registry=registry
        )
