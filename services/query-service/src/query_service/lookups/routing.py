"""Lookups at whichever replica answers: which one to ask for a partition, and which next when that one cannot."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import override

from query_service import lookups
from query_service.cluster.shard_map import Member, StorePartition
from query_service.cluster.view import View
from query_service.errors import BoundsError, LookupFailedError, NotServedError, TimedOutError, UnreachableError
from query_service.lookups import page_token, scan
from query_service.lookups.hedging import Hedging
from query_service.lookups.preference import Preference
from query_service.lookups.replica_reads import check_history
from query_service.lookups.request_checks import Limits
from query_service.lookups.routed_peer import RoutedPeer
from query_service.lookups.split_batch import parts_of, split_batch, without_misplaced
from query_service.metrics import Metrics

_PAUSE_S = 0.05

Result = TypeVar("Result")
Call = Callable[[lookups.Lookup, float], Awaitable[Result]]


@dataclass(eq=False)
class RoutedLookup(lookups.Lookup):
    """Looks up in all partitions of all stores. Raises UnknownStoreError for a store that there is not.

    It asks the owner first and then the other replicas, in the order of the Preference; each call makes at most one
    hop, because peers never forward. A replica that failed lately is asked last. When a peer is slow, the next replica
    that has not failed lately is asked as well (see Hedging); each holds itself to the bounds of the query. A second
    round, a moment later, covers the time in which the instances disagree about who holds the partition. Each replica
    gets `peer_timeout_s` while there are others left to ask.
    """

    view: View
    local: lookups.Lookup
    peer_of: Callable[[Member], RoutedPeer]
    preference: Preference
    hedging: Hedging
    peer_timeout_s: float
    limits: Limits
    metrics: Metrics
    monotonic: Callable[[], float]

    @override
    async def get(self, query: lookups.GetQuery, deadline: float) -> lookups.GetResult:
        if query.as_of is not None:
            check_history(self.view.store(query.store))
        shard = self.view.shard_of(query.store, query.key.group)
        return await self.first_result(
            shard, lambda lookup, until: lookup.get(query, until), deadline, "get", bounds=query.bounds
        )

    @override
    async def batch(self, query: lookups.BatchQuery, deadline: float) -> lookups.BatchResult:
        def look_up(partition: int, part: lookups.BatchQuery) -> Awaitable[lookups.BatchResult]:
            shard, wait_s = (query.store, partition), part.max_wait_s
            return self.first_result(
                shard, lambda lookup, until: lookup.batch(part, until), deadline, "batch", wait_s, part.bounds
            )

        parts = parts_of(query, self.view)
        result = await split_batch(parts, look_up, query.max_wait_s, deadline, self.monotonic)
        return without_misplaced(query, result, self.view) if query.store in self.view.misplaced else result

    @override
    async def scan(self, query: lookups.ScanQuery, deadline: float, partition: int | None = None) -> lookups.PageResult:
        """Returns a page. A query with `local_only` is answered here, and nowhere else."""
        if query.local_only:
            return await self.local.scan(query, deadline)
        if partition is None and not query.group:
            return await scan.store_page(query, self.view, self.limits, lambda part, n: self.scan(part, deadline, n))
        page_token.decode_scan(query, query.page_token)  # so that a bad token is refused here, and no replica is asked
        number = self.view.shard_of(query.store, query.group)[1] if partition is None else partition
        return await self.first_result(
            (query.store, number),
            lambda lookup, until: lookup.scan(query, until, partition),
            deadline,
            "scan",
            bounds=query.bounds,
        )

    @override
    async def versions(self, query: lookups.VersionsQuery, deadline: float) -> lookups.VersionsResult:
        check_history(self.view.store(query.store))
        shard = self.view.shard_of(query.store, query.key.group)
        return await self.first_result(
            shard, lambda lookup, until: lookup.versions(query, until), deadline, "versions", bounds=query.bounds
        )

    async def first_result(
        self,
        shard: StorePartition,
        call: Call[Result],
        deadline: float,
        kind: str = "",
        wait_s: float = 0.0,
        bounds: lookups.Bounds | None = None,
    ) -> Result:
        """Returns the first result of `call`, which asks a Lookup until a time; see Hedging for `kind` and `wait_s`.

        `bounds` are those of the query: replicas that are known to miss them are asked later.

        Raises the replicas' most telling error: AbsentError and InvalidRequestError at once, else BoundsError, else
        NotServedError or UnreachableError of the first.
        """
        try:
            return await self._round(shard, call, deadline, kind, wait_s, bounds)
        except (NotServedError, UnreachableError):
            if self.monotonic() + _PAUSE_S >= deadline:
                raise
        await asyncio.sleep(_PAUSE_S)
        return await self._round(shard, call, deadline, kind, wait_s, bounds)

    async def _round(
        self,
        shard: StorePartition,
        call: Call[Result],
        deadline: float,
        kind: str,
        wait_s: float,
        bounds: lookups.Bounds | None,
    ) -> Result:
        failures: dict[Member, LookupFailedError] = {}
        me = self.view.me
        ranked = self.preference.order(shard, bounds)
        usable = [member for member in ranked if member == me or self.peer_of(member).usable(shard)]
        left = deque(sorted(ranked, key=lambda member: member not in usable))
        hedges = {*usable}.intersection(self.view.shard_map.holders(*shard))

        async def attempt() -> Result | None:
            member = left.popleft()
            try:
                return await self._ask(member, shard, call, deadline, wait_s, others=len(left))
            except (NotServedError, UnreachableError, BoundsError) as failure:
                failures[member] = failure
                return None

        while left:
            if left[0] != me and len(left) > 1 and left[1] in hedges:
                result = await self.hedging.first_of(kind, attempt, self.peer_of(left[0]), wait_s)
            else:
                result = await attempt()
            if result is not None:
                return result
            if self.monotonic() >= deadline:
                break
        return await self._last_chance(shard, call, deadline, wait_s, failures)

    async def _last_chance(
        self,
        shard: StorePartition,
        call: Call[Result],
        deadline: float,
        wait_s: float,
        failures: Mapping[Member, Exception],
    ) -> Result:
        """Waits for one that is behind, and, while another holder is silent, for both: that one may be fresh enough."""
        behind = next((member for member, failure in failures.items() if isinstance(failure, BoundsError)), None)
        if behind is None:
            outside = NotServedError(f"{self.view.me.instance} has not joined the group yet: try again")
            raise next(iter(failures.values()), outside)
        holders = self.view.shard_map.holders(*shard)
        silent = [member for member in holders if isinstance(failures.get(member), (NotServedError, UnreachableError))]
        while silent and self.monotonic() + 2 * _PAUSE_S < deadline:
            for member in (*silent, behind):
                with suppress(NotServedError, UnreachableError, BoundsError):
                    return await self._ask(member, shard, call, deadline, wait_s, others=1)
            await asyncio.sleep(_PAUSE_S)
        try:
            return await self._ask(behind, shard, call, deadline, wait_s, others=0)
        except UnreachableError as gone:  # that it is behind says more than that it did not say so again
            raise failures[behind] from gone

    async def _ask(
        self,
        member: Member,
        shard: StorePartition,
        call: Call[Result],
        deadline: float,
        wait_s: float,
        *,
        others: int,
    ) -> Result:
        now = self.monotonic()
        silent_at = now + wait_s + self.peer_timeout_s  # who has not answered by then does not answer at all
        until = min(silent_at, now + (deadline - now) / 2 + wait_s, deadline) if others else deadline
        if member == self.view.me:
            return await call(self.local, until)
        peer = self.peer_of(member)
        try:
            result = await call(peer.lookup, until)
        except UnreachableError as failure:
            self.metrics.forwards.labels("unreachable").inc()
            if until >= silent_at or not isinstance(failure, TimedOutError):
                peer.failed(None)
            raise
        except NotServedError:
            self.metrics.forwards.labels("not_served").inc()
            peer.failed(shard)
            raise
        except LookupFailedError:
            self.metrics.forwards.labels("refused").inc()
            peer.answered(shard)
            raise
        self.metrics.forwards.labels("answered").inc()
        peer.answered(shard)
        return result
