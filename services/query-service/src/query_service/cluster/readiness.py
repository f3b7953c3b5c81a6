"""Says why the instance is not ready, and keeps the gauges of its partitions."""

from typing import Protocol

from query_service.cluster.peer_memory import Shard
from query_service.cluster.roster import Roster
from query_service.cluster.view import View
from query_service.metrics import Metrics


class Settling(Protocol):
    """What opens the partitions; see Placement."""

    settled: bool


class Readiness:
    """Ready from the first time that all own partitions have caught up until the instance drains.

    A partition that is taken over later does not make the instance unready: until it has caught up, calls for it are
    passed on to those who serve it.
    """

    def __init__(self, view: View, roster: Roster, placement: Settling, metrics: Metrics) -> None:
        """Looks at the parts; `look` is called on the event loop."""
        self._view = view
        self._roster = roster
        self._placement = placement
        self._metrics = metrics
        self._once = False
        self._shown: set[Shard] = set()
        self.reason: str | None = "starting"

    def look(self) -> None:
        """Brings `reason` and the gauges up to date."""
        reason = None if self._once else self._why_not()
        self._once = reason is None
        self.reason = reason
        metrics = self._metrics
        for gone in self._shown - self._view.hosts.keys():
            for gauge in (metrics.lag_records, metrics.lag_seconds, metrics.applied_offset, metrics.serving):
                gauge.remove(gone[0], str(gone[1]))
        self._shown = set(self._view.hosts)
        metrics.members.set(len(self._view.shard_map.members))
        for (store, partition), host in self._view.hosts.items():
            labels = (store, str(partition))
            metrics.lag_records.labels(*labels).set(host.progress.lag_records)
            metrics.lag_seconds.labels(*labels).set(host.progress.lag_s)
            metrics.applied_offset.labels(*labels).set(host.progress.current_through)
            metrics.serving.labels(*labels).set(host.progress.serving)

    def _why_not(self) -> str | None:
        missing = sorted(self._view.topic_names - self._view.topics.keys())
        if missing:
            return f"waiting for kafka to describe the topics: {', '.join(missing)}"
        if not self._roster.joined:
            return "waiting to be in the consumer group"
        if not self._placement.settled and self._view.wanted():
            return "opening the partitions"
        behind = [
            f"{store}/{partition} ({host.progress.lag_records} records to go)"
            for (store, partition), host in sorted(self._view.hosts.items())
            if not host.progress.serving
        ]
        return f"catching up: {', '.join(behind)}" if behind else None
