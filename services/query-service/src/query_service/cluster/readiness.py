"""Says why the instance is not ready, and measures its partitions for the metrics."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from query_service.cluster.shard_map import MemberTracker
from query_service.cluster.view import View
from query_service.metrics import Measured, Metrics


@dataclass(eq=False)
class Readiness:
    """Ready from the first time that all own partitions have caught up until the instance drains.

    Before, it also asks its peers once: a key of a partition of its own may stand, misplaced, in one of theirs.

    A partition that is taken over later does not make the instance unready: until it has caught up, calls for it are
    forwarded to the replicas that serve it. `all_open` says whether all partitions are open that are
    assigned to this instance now, `peers_asked` whether each peer has listed its partitions or failed to.
    """

    view: View
    tracker: MemberTracker
    all_open: Callable[[], bool]
    peers_asked: Callable[[], bool]
    metrics: Metrics
    reason: str | None = field(default="starting", init=False)
    _was_ready: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.metrics.members.set_function(lambda: len(self.view.shard_map.members))
        self.metrics.partitions.set_function(self._measured)

    def update(self) -> None:
        reason = None if self._was_ready else self._reason()
        self._was_ready = reason is None
        self.reason = reason

    def _measured(self) -> Iterator[Measured]:
        for (store, partition), replica in list(self.view.replicas.items()):  # the event loop may change them
            progress = replica.progress
            yield store, partition, (progress.lag_records, progress.lag_s, progress.applied_offset, progress.serving)

    def _reason(self) -> str | None:
        missing = sorted(self.view.topic_names - self.view.topics.keys())
        if missing:
            return f"waiting for kafka to describe the topics: {', '.join(missing)}"
        if not self.tracker.joined:
            return "waiting to be in the consumer group"
        if not self.all_open():
            return "opening the partitions"
        if not self.peers_asked():
            return "asking the other instances for their partitions"
        behind = [
            f"{store}/{partition} ({replica.progress.lag_records} records to go)"
            for (store, partition), replica in sorted(self.view.replicas.items())
            if not replica.progress.serving
        ]
        return f"catching up: {', '.join(behind)}" if behind else None
