"""Notices instances that hold partitions by another number of replicas than this one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from query_service.metrics import Metrics

_log = structlog.get_logger()


@dataclass(eq=False)
class ReplicasWatch:
    """A watch on the REPLICAS of the peers, which must be that of this instance.

    With different settings, instances disagree about the holders of a partition, and some partitions have fewer
    replicas.

    `of_peers` returns the REPLICAS of each peer by its name, as it said last; zero when it does not say it.
    """

    own: int
    of_peers: Callable[[], Mapping[str, int]]
    metrics: Metrics
    _others: Mapping[str, int] = field(default_factory=dict, init=False)

    def update(self) -> None:
        """Logs the peers that differ when they are others than before, and counts them."""
        others = {name: replicas for name, replicas in self.of_peers().items() if replicas not in (0, self.own)}
        self.metrics.replicas_differ.set(len(others))
        if others and others != self._others:
            _log.error("REPLICAS differs between instances: set the same number on all", own=self.own, others=others)
        self._others = others
