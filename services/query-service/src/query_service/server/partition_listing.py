"""Tells peers how far this instance's partitions are: all of them, or those that changed since a peer last asked."""

from collections.abc import Collection
from dataclasses import dataclass, field
from secrets import token_bytes

from query_service.cluster.misplaced import MisplacedAt, groups_of
from query_service.cluster.shard_map import StorePartition
from query_service.cluster.view import View
from query_service.reads.messages import fill_freshness, freshness_of
from query_service.reads.routed_peer import Held
from query_service.storage.progress import Freshness
from statecast.shard.v1 import shard_service_pb2 as shard

_STEADY_LAG_MS = 1000
"""Partitions with at most this lag are reported with one common lag."""

_Facts = tuple[bool, Freshness, frozenset[bytes]]
"""Whether a partition serves, its freshness without the lag in time, and its misplaced keys."""


@dataclass(eq=False)
class PartitionListing:
    """Increments a version when a partition changes, and keeps the version of each partition's last change."""

    view: View
    _process: bytes = field(default_factory=lambda: token_bytes(8), init=False)
    _version: int = field(default=0, init=False)
    _removed_in: int = field(default=0, init=False)
    _seen: dict[StorePartition, tuple[_Facts, int]] = field(default_factory=dict, init=False)

    def answer(self, known_version: bytes) -> shard.ListPartitionsResponse:
        """Returns the partitions that have changed since a version, and those that lag by more than _STEADY_LAG_MS.

        Returns all when the version is not one of this process, or when a partition was removed after it.
        """
        lags = self._look()
        since = self._since(known_version)
        response = shard.ListPartitionsResponse(
            instance=self.view.me.instance,
            replicas=self.view.shard_map.replicas,
            version=self._process + self._version.to_bytes(8, "big"),
            changes_only=since >= 0,
        )
        for place, ((serving, freshness, misplaced), changed_in) in sorted(self._seen.items()):
            lag_ms = lags[place]
            if changed_in <= since and lag_ms <= _STEADY_LAG_MS:
                response.untold_lag_ms = max(response.untold_lag_ms, lag_ms)
                continue
            message = response.partitions.add(store=place[0], serving=serving, misplaced_groups=groups_of(misplaced))
            fill_freshness(message.freshness, freshness._replace(lag_ms=lag_ms))
        return response

    def _look(self) -> dict[StorePartition, int]:
        """Notes the partitions that have changed; returns the lag of each partition, in milliseconds."""
        lags, version, instance = dict[StorePartition, int](), self._version + 1, self.view.me.instance
        for place, replica in self.view.replicas.items():
            freshness = replica.freshness(instance)
            lags[place] = freshness.lag_ms
            facts = replica.progress.serving, freshness._replace(lag_ms=0), replica.store.misplaced
            if place not in self._seen or self._seen[place][0] != facts:
                self._seen[place] = facts, version
                self._version = version
        for place in self._seen.keys() - lags.keys():
            del self._seen[place]
            self._version = self._removed_in = version
        return lags

    def _since(self, known_version: bytes) -> int:
        """Returns the number of a version, or -1 when all partitions have to be reported."""
        since = int.from_bytes(known_version[len(self._process) :], "big")
        is_known = known_version.startswith(self._process) and self._removed_in <= since <= self._version
        return since if is_known else -1


@dataclass(frozen=True)
class Listed:
    """The partitions as a peer has reported them, and the version with which to ask for changes."""

    version: bytes = b""
    held: Held = field(default_factory=dict)
    misplaced: MisplacedAt = field(default_factory=dict)

    def after(self, answer: shard.ListPartitionsResponse) -> "Listed":
        """Returns the partitions after an answer to a request with this version."""
        held = {
            (each.store, each.freshness.partition): (each.serving, freshness_of(each.freshness))
            for each in answer.partitions
        }
        misplaced: dict[tuple[str, int, int], Collection[str]] = {
            (each.store, each.freshness.partition, freshness_of(each.freshness).epoch): each.misplaced_groups
            for each in answer.partitions
            if each.misplaced_groups
        }
        if answer.changes_only:
            lag_ms = answer.untold_lag_ms
            before = ((place, fact) for place, fact in self.held.items() if place not in held)
            untold = {place: (serving, fresh._replace(lag_ms=lag_ms)) for place, (serving, fresh) in before}
            misplaced |= {key: groups for key, groups in self.misplaced.items() if key[:2] in untold}
            held |= untold
        return Listed(answer.version, held, misplaced)
