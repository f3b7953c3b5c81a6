"""Chooses the instance that answers for a key; only this module orders the holders of a partition for reads."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from query_service.cluster.shard_map import Member, ShardMap, StorePartition
from query_service.cluster.view import View
from query_service.reads.routed_peer import RoutedPeer
from query_service.storage.replica import Replica
from statecast.query.v1 import query_pb2

_NOBODY: frozenset[Member] = frozenset()


class Route(NamedTuple):
    """Who is asked for a partition, and who when that one is late or fails, if anybody."""

    first: Member
    second: Member | None


@dataclass(eq=False)
class Preference:
    """Replicas are asked by their rank, but those that lag behind another one later.

    A holder that lags `demoted_s` more than the best of its partition is asked after the other holders.

    It has its rank back once it lags less than `restored_s` more. Both differ, so that a replica at the bound does not
    change places with every call. Of a peer counts the lag that it has said last. When all lag alike,
    as without a broker, nothing changes.
    """

    view: View
    peer_of: Callable[[Member], RoutedPeer]
    demoted_s: float
    restored_s: float
    _demoted: dict[StorePartition, frozenset[Member]] = field(default_factory=dict, init=False)
    _ranked_in: ShardMap | None = field(default=None, init=False)
    _ranked_first: dict[StorePartition, bool] = field(default_factory=dict, init=False)

    def own(self, shard: StorePartition) -> Replica | None:
        """Returns the replica of this instance if it serves, and is the one that is asked first.

        The rank is looked up once per shard map. No other lag is asked for while this one is so low that it demotes
        nobody: each call then costs less than a microsecond, and none sees an older order than `order` has.
        """
        replica, shard_map, me = self.view.replicas.get(shard), self.view.shard_map, self.view.me
        if replica is None or not replica.progress.serving:
            return None
        if shard_map is not self._ranked_in:
            self._ranked_in, self._ranked_first = shard_map, {}
        first = self._ranked_first.get(shard)
        if first is None:
            first = self._ranked_first[shard] = shard_map.ranked(*shard)[:1] == (me,)
        if first and replica.progress.lag_s <= self.demoted_s and me not in self._demoted.get(shard, ()):
            return replica
        return replica if self._order(shard)[:1] == (me,) else None

    def holder(self, shard: StorePartition) -> Replica | Route | None:
        """Returns the route to ask for a partition now, the own replica if no peer comes first, None for nobody.

        Passes over members that failed lately; this call may try one such peer again.
        """
        me, own = self.view.me, self.view.replicas.get(shard)
        serves = own is not None and own.progress.serving
        ranked = self.order(shard)
        usable = (member for member in ranked if (serves if member == me else self.peer_of(member).usable(shard)))
        first = next(usable, None)
        if first is None or first == me:
            return None if first is None else own
        second = next(usable, None)
        return Route(first, second if second in self.view.shard_map.holders(*shard) else None)

    def candidates(self, shard: StorePartition, bounds: query_pb2.Bounds | None) -> tuple[list[Member], set[Member]]:
        """Returns everyone to ask, those that failed lately last, and those that may be asked beside a slow one."""
        ranked, me = self.order(shard, bounds), self.view.me
        usable = [member for member in ranked if member == me or self.peer_of(member).usable(shard)]
        hedges = {*usable}.intersection(self.view.shard_map.holders(*shard))
        return sorted(ranked, key=lambda member: member not in usable), hedges

    def order(self, shard: StorePartition, bounds: query_pb2.Bounds | None = None) -> tuple[Member, ...]:
        """Returns everyone who may answer for the partition: the holders, then the others by their rank.

        While a holder is known to meet the `max_lag_ms` of the bounds, those that are known to lag more come after it:
        a caller does not wait for them.
        """
        order = self._order(shard)
        if bounds is None or not bounds.HasField("max_lag_ms"):
            return order
        holders = self.view.shard_map.holders(*shard)
        lags = [(member, lag * 1000) for member in holders if (lag := self._lag_s(member, shard)) is not None]
        late = {member for member, lag_ms in lags if lag_ms > bounds.max_lag_ms}
        if not late or len(late) == len(lags):
            return order
        return (*sorted(order[: len(holders)], key=late.__contains__), *order[len(holders) :])

    def _order(self, shard: StorePartition) -> tuple[Member, ...]:
        ranked, holders = self.view.shard_map.ranked(*shard), self.view.shard_map.holders(*shard)
        before = self._demoted.get(shard, _NOBODY)
        if not before and all((self._lag_s(member, shard) or 0.0) <= self.demoted_s for member in holders):
            return ranked  # as nearly always: none can lag so much more than another
        demoted = self._late(shard, holders, before) if len(holders) > 1 else _NOBODY
        if demoted:
            self._demoted[shard] = demoted
            return (*sorted(holders, key=demoted.__contains__), *ranked[len(holders) :])
        if before:
            del self._demoted[shard]
        return ranked

    def _late(self, shard: StorePartition, holders: tuple[Member, ...], before: frozenset[Member]) -> frozenset[Member]:
        """Returns the holders to demote; a demoted one that does not serve or does not answer stays demoted."""
        lags = {member: self._lag_s(member, shard) for member in holders}
        bounds_s = self.demoted_s, self.restored_s
        least = min((lag for lag in lags.values() if lag is not None), default=0.0)
        return frozenset(
            member
            for member, lag in lags.items()
            if (member in before if lag is None else lag - least > bounds_s[member in before])
        )

    def _lag_s(self, member: Member, shard: StorePartition) -> float | None:
        if member == self.view.me:
            replica = self.view.replicas.get(shard)
            return replica.progress.lag_s if replica is not None and replica.progress.serving else None
        serving, freshness = self.peer_of(member).held.get(shard, (False, None))
        return freshness.lag_ms / 1000 if serving and freshness is not None else None
