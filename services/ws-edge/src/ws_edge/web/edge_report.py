"""What an edge tells operators of itself: what is open, what it has done since its start, how fresh its frames are."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry

from ws_edge.metrics import AGE_BUCKETS, Metrics

GAUGES = {
    "sockets": "ws_edge_sockets",
    "subscriptions": "ws_edge_subscriptions",
    "unique_keys": "ws_edge_unique_keys",
}
TOTALS = {
    "frames_sent": "ws_edge_frames_sent_total",
    "skipped": "ws_edge_skipped_total",
    "polled_keys": "ws_edge_polled_keys_total",
    "changed_keys": "ws_edge_changed_keys_total",
    "failed_keys": "ws_edge_failed_keys_total",
    "sockets_opened": "ws_edge_sockets_opened_total",
}


class EdgeReport:
    """Reads the metrics of an edge. Totals only rise; a reader who asks twice has the rates between."""

    def __init__(
        self, instance: str, metrics: Metrics, not_ready: Callable[[], str | None], clock: Callable[[], float]
    ) -> None:
        """`not_ready` says why the edge should get no traffic, or None."""
        self._instance = instance
        self._metrics = metrics
        self._not_ready = not_ready
        self._clock = clock
        self._started_at = clock()

    def document(self) -> dict[str, Any]:
        """An EdgeDocument."""
        registry = self._metrics.registry
        return {
            "instance": self._instance,
            "uptime_s": self._clock() - self._started_at,
            "not_ready": self._not_ready(),
            **{field: _sample(registry, name) for field, name in GAUGES.items()},
            "totals": {
                **{field: _sample(registry, name) for field, name in TOTALS.items()},
                "stalled_sockets": _sample(registry, "ws_edge_sockets_closed_total", {"reason": "stalled"}),
            },
            "ages": {"bounds_s": list(AGE_BUCKETS), "counts": self._metrics.frames.age_counts()},
        }


def _sample(registry: CollectorRegistry, name: str, labels: dict[str, str] | None = None) -> int:
    return int(registry.get_sample_value(name, labels) or 0)
