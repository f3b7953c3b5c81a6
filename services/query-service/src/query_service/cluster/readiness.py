"""Says why the instance is not ready, and updates the gauges of its partitions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from query_service.cluster.shard_map import MemberTracker, StorePartition
from query_service.cluster.view import View
from query_service.metrics import Metrics


@dataclass(eq=False)
class Readiness:
    """Ready from the first time that all own partitions have caught up until the instance drains.

    A partition that is taken over later does not make the instance unready: until it has caught up, calls for it are
    forwarded to the replicas that serve it. `all_open` says whether all partitions are open that the
    present shard map assigns to this instance.
    """

    view: View
    tracker: MemberTracker
    all_open: Callable[[], bool]
    metrics: Metrics
    reason: str | None = field(default="starting", init=False)
    _was_ready: bool = field(default=False, init=False)
    _shown: set[StorePartition] = field(default_factory=set, init=False)

    def update(self) -> None:
        reason = None if self._was_ready else self._reason()
        self._was_ready = reason is None
        self.reason = reason
        metrics = self.metrics
        metrics.members.set(len(self.view.shard_map.members))
        gauges = (metrics.lag_records, metrics.lag_seconds, metrics.applied_offset, metrics.serving)
        for store, partition in self._shown - self.view.replicas.keys():
            for gauge in gauges:
                gauge.remove(store, str(partition))
        self._shown = set(self.view.replicas)
        for (store, partition), replica in self.view.replicas.items():
            progress = replica.progress
            values = (progress.lag_records, progress.lag_s, progress.applied_offset, progress.serving)
            for gauge, value in zip(gauges, values, strict=True):
                gauge.labels(store, str(partition)).set(value)

    def _reason(self) -> str | None:
        missing = sorted(self.view.topic_names - self.view.topics.keys())
        if missing:
            return f"waiting for kafka to describe the topics: {', '.join(missing)}"
        if not self.tracker.joined:
            return "waiting to be in the consumer group"
        if not self.all_open():
            return "opening the partitions"
        behind = [
            f"{store}/{partition} ({replica.progress.lag_records} records to go)"
            for (store, partition), replica in sorted(self.view.replicas.items())
            if not replica.progress.serving
        ]
        return f"catching up: {', '.join(behind)}" if behind else None
