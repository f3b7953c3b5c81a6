"""Counts what the queries write, and measures how old it is, while they run."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog
from confluent_kafka import KafkaException

from stream_processor.metrics import Metrics

log = structlog.get_logger()

RECENT = 10
"""Looks that the quantiles for people are taken over."""


class Tail(Protocol):
    """Tells what came onto topics; see SinkTail."""

    def look(self) -> tuple[dict[str, int], dict[str, list[float]]]:
        """By topic, how many records came since the last look, and the lags in seconds of a sample of them."""

    def close(self) -> None:
        """Lets go of the connections."""


class Output:
    """What stands on the sinks: `queries` names the query that writes each topic, `keyed` those of StateRecords."""

    def __init__(self, tail: Tail, queries: Mapping[str, str], keyed: Sequence[str], metrics: Metrics) -> None:
        self._tail = tail
        self._queries = queries
        self._keyed = keyed
        self._metrics = metrics
        self._recent: deque[tuple[int, list[float]]] = deque(maxlen=RECENT)

    def look(self) -> None:
        """Updates the metrics; a broker that is away for a moment is no reason to stop."""
        try:
            written, lags = self._tail.look()
        except KafkaException as error:
            log.warning("what is written cannot be measured now", reason=str(error))
            return
        for topic, count in written.items():
            self._metrics.output_rows.labels(self._queries[topic]).inc(count)
        for topic in self._keyed:
            for lag in lags.get(topic, ()):
                self._metrics.lag.labels(self._queries[topic]).observe(lag)
        sampled = [lag for topic in self._keyed for lag in lags.get(topic, ())]
        self._recent.append((sum(written.values()), sampled))

    @property
    def rate(self) -> float:
        """Records a look, over the recent ones."""
        return sum(count for count, _ in self._recent) / max(len(self._recent), 1)

    def quantile(self, share: float) -> float | None:
        """The lag in seconds below which this share of the recent samples lies; None when there is none."""
        lags = sorted(lag for _, sampled in self._recent for lag in sampled)
        return lags[round(share * (len(lags) - 1))] if lags else None

    def close(self) -> None:
        """Ends the measuring."""
        self._tail.close()
