"""Gathers the misplaced keys that this instance and its peers know, so that no lookup says that they are absent."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog

from query_service.cluster.misplaced import MisplacedAt, groups_of, misplaced_of
from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.metrics import Metrics

_log = structlog.get_logger()

_Known = dict[str, dict[int, frozenset[str]]]
"""The misplaced groups by store and partition."""


@dataclass(eq=False)
class MisplacedWatch:
    """Sets `view.misplaced`, on the event loop. `of_peers` has the last answer of each peer."""

    view: View
    of_peers: Callable[[], Iterable[MisplacedAt]]
    metrics: Metrics
    _sources: tuple[object, ...] = field(default=(), init=False)

    def update(self) -> None:
        """Takes the known misplaced keys; logs each store with any, and again when it is known where they would fit."""
        before, stores, topics = self.view.misplaced, self.view.stores, self.view.topics
        # Each of them is replaced as a whole, so that comparing costs nothing while none has changed.
        own = [(key, each.store.misplaced) for key, each in self.view.replicas.items() if each.store.misplaced]
        peers = list(self.of_peers())
        sources = own, peers, stores, topics
        if sources == self._sources:
            return
        self._sources, known = sources, self._gather(own, peers)
        self.view.misplaced = {
            name: misplaced_of(stores[name], topics[stores[name].topic].partitions, places)
            for name, places in known.items()
        }
        for name in before.keys() - known.keys():
            self.metrics.misplaced_keys.labels(name).set(0)
        for name, misplaced in self.view.misplaced.items():
            self.metrics.misplaced_keys.labels(name).set(len(misplaced.groups))
            last = before.get(name)
            if last is None or (last.everything, last.fit) != (misplaced.everything, misplaced.fit):
                _log.error("lookups of misplaced keys are refused", store=name, reason=misplaced.reason)

    def _gather(self, own: Iterable[tuple[StorePartition, frozenset[bytes]]], peers: Iterable[MisplacedAt]) -> _Known:
        known: defaultdict[str, dict[int, frozenset[str]]] = defaultdict(dict)
        for (store, partition), keys in own:
            known[store][partition] = frozenset(groups_of(keys))
        for peer in peers:
            for (store, partition, epoch), groups in peer.items():
                topic = self.view.topics.get(self.view.stores[store].topic) if store in self.view.stores else None
                if topic is None or topic.epoch != epoch or partition >= topic.partitions:
                    continue
                # While a stores file is changed, a peer may have another partitioner, and take all keys for misplaced.
                belongs_in = self.view.partitioner_of(store)
                stray = frozenset(group for group in groups if belongs_in(group.encode()) != partition)
                if stray:
                    known[store][partition] = known[store].get(partition, frozenset()) | stray
        return {store: places for store, places in known.items() if store in self.view.stores}
