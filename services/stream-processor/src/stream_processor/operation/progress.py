"""Turns what Spark tells about a query into metrics."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from stream_processor.metrics import Metrics

COMMIT_STEPS = ("walCommit", "commitOffsets")


class Progress:
    """Follows one query; told the same progress twice, it counts it once.

    `interval_s` is the time between checkpoints of a real-time query, 0 of others; `clock` gives seconds since 1970.
    """

    def __init__(
        self, query: str, metrics: Metrics, interval_s: float = 0.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._query = query
        self._metrics = metrics
        self._interval_s = interval_s
        self._clock = clock
        self._seen = -1

    def is_news(self, progress: Mapping[str, Any]) -> bool:
        """Whether this progress has not been told."""
        return bool(progress["batchId"] > self._seen)

    def follows(self, progress: Mapping[str, Any]) -> bool:
        """Whether no batch lies between the last one told and this."""
        return bool(progress["batchId"] == self._seen + 1)

    def tell(self, progress: Mapping[str, Any]) -> None:
        """Takes a StreamingQueryProgress in its JSON form."""
        if not self.is_news(progress):
            return
        self._seen = progress["batchId"]
        operators = progress["stateOperators"]
        metrics, query = self._metrics, self._query
        metrics.checkpoints.labels(query).inc()
        metrics.checkpoint_seconds.labels(query).set(_checkpoint_ms(progress) / 1000)
        metrics.last_checkpoint.labels(query).set(self._clock())
        if self._interval_s:
            taken_s = progress["durationMs"].get("triggerExecution", 0) / 1000
            metrics.checkpoint_pause.labels(query).set(max(taken_s - self._interval_s, 0.0))
        metrics.input_rows.labels(query).inc(progress["numInputRows"])
        metrics.input_rate.labels(query).set(_rate(progress))
        metrics.state_rows.labels(query).set(sum(operator["numRowsTotal"] for operator in operators))
        metrics.state_bytes.labels(query).set(sum(operator["memoryUsedBytes"] for operator in operators))


def _checkpoint_ms(progress: Mapping[str, Any]) -> float:
    """The write-ahead and commit logs, and the stores' commits, which the partitions make side by side."""
    logs = sum(progress["durationMs"].get(step, 0) for step in COMMIT_STEPS)
    stores = sum(each["commitTimeMs"] / max(each["numShufflePartitions"], 1) for each in progress["stateOperators"])
    return float(logs + stores)


def _rate(progress: Mapping[str, Any]) -> float:
    """Rows a second over the batch: Spark's own rate is against the pause before it, none in real-time mode."""
    duration_ms = progress["durationMs"].get("triggerExecution", 0)
    return float(progress["numInputRows"] * 1000 / duration_ms) if duration_ms else 0.0
