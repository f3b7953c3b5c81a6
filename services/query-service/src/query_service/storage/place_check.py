"""Notices keys that stand in another partition than theirs, where lookups do not find them."""

from collections.abc import Callable, Sequence
from itertools import islice

import structlog

from query_service.metrics import Metrics

_MOST_A_BATCH = 100

_log = structlog.get_logger()


class PlaceCheck:
    """One partition. It warns once; of a large batch it looks at a hundred keys, spread over all of it."""

    def __init__(
        self, store: str, topic: str, partition: int, partitions: int, hash_of: Callable[[str], int], metrics: Metrics
    ) -> None:
        """Expects the keys whose hash is `partition` modulo `partitions`."""
        self._store = store
        self._topic = topic
        self._partition = partition
        self._partitions = partitions
        self._hash_of = hash_of
        self._misplaced = metrics.misplaced_keys.labels(store)
        self._warned = False

    def check(self, keys: Sequence[bytes]) -> None:
        """Counts the misplaced among the keys of a batch."""
        step = max(1, len(keys) // _MOST_A_BATCH)
        for key in islice(keys, 0, None, step):
            group = key.partition(b"\0")[0]
            belongs_to = self._hash_of(group.decode()) % self._partitions
            if belongs_to != self._partition:
                self._misplaced.inc()
                self._warn(key, belongs_to)

    def _warn(self, key: bytes, belongs_to: int) -> None:
        if self._warned:
            return
        self._warned = True
        _log.warning(
            "a key stands in another partition than its own, so lookups do not find it: "
            "set `partitioner` of the store to that of the topic's producers",
            store=self._store,
            topic=self._topic,
            partition=self._partition,
            belongs_to=belongs_to,
            key=key.decode(),
        )
