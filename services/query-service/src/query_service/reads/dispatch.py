"""Asks the replicas of a partition: one after the other until one answers, and two at a time when one is slow."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from query_service.cluster.shard_map import Member, StorePartition
from query_service.cluster.view import View
from query_service.errors import (
    BoundsError,
    LookupFailedError,
    NotServedError,
    PeerOverloadedError,
    TimedOutError,
    UnreachableError,
)
from query_service.metrics import Metrics
from query_service.reads import Reads
from query_service.reads.hedge import Hedging
from query_service.reads.route import Preference, Route
from query_service.reads.routed_peer import RoutedPeer
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api

_PAUSE_S = 0.05

Result = TypeVar("Result")
Call = Callable[[Reads, float], Awaitable[Result]]
"""Asks some Reads, until a time of the monotonic clock."""


@dataclass(slots=True, eq=False)
class _Asking(Generic[Result]):
    """A call to one replica after the other until one answers; the failures of those that did not.

    `kind` names calls with comparable times, `wait_s` is how long the call itself may wait, `spare` how many are asked
    after those of this round, and `needs` the features without which a peer would answer something else.
    """

    call: Call[Result]
    deadline: float
    kind: str
    places: Collection[StorePartition]
    wait_s: float = 0.0
    spare: int = 0
    needs: frozenset[str] = frozenset()
    failures: dict[Member, LookupFailedError] = field(default_factory=dict)


@dataclass(eq=False)
class Dispatch:
    """Calls the replicas of partitions in the order of the Preference.

    The owner is asked first and then the other replicas; each call makes at most one hop, as peers never forward. A
    replica that failed lately is asked last. When a peer is slow, the next replica that has not failed lately is asked
    as well (see Hedging). A second round, a moment later, covers the time in which the instances disagree about who
    holds the partition. While there are others to ask, each gets `peer_timeout_s`, and half of the time that is left.
    """

    view: View
    local: Reads
    peer_of: Callable[[Member], RoutedPeer]
    preference: Preference
    hedging: Hedging
    peer_timeout_s: float
    metrics: Metrics
    monotonic: Callable[[], float]

    async def first_answer(
        self,
        shard: StorePartition,
        call: Call[Result],
        deadline: float,
        kind: str = "",
        wait_s: float = 0.0,
        bounds: query_pb2.Bounds | None = None,
        needs: frozenset[str] = frozenset(),
    ) -> Result:
        """Returns the first answer to `call`, which asks some Reads until a time; see Hedging for `kind` and `wait_s`.

        `bounds` are those of the request: replicas that are known to miss them are asked later. Peers without a feature
        that the request `needs` are not asked.

        Raises the replicas' most telling error: AbsentError, InvalidRequestError and MisplacedKeyError at once, else
        BoundsError, else NotServedError or UnreachableError of the first.
        """
        asking = _Asking(call, deadline, kind, (shard,), wait_s, needs=needs)
        try:
            return await self._round(shard, asking, bounds)
        except (NotServedError, UnreachableError):
            if self.monotonic() + _PAUSE_S >= deadline:
                raise
        await asyncio.sleep(_PAUSE_S)
        asking.failures = {}
        return await self._round(shard, asking, bounds)

    async def _round(self, shard: StorePartition, asking: _Asking[Result], bounds: query_pb2.Bounds | None) -> Result:
        members, hedges = self.preference.candidates(shard, bounds)
        answer = await self._first_of(members, hedges, asking)
        return await self._last_chance(shard, asking) if answer is None else answer

    async def of_route(
        self, route: Route, call: Call[Result], deadline: float, kind: str, places: Collection[StorePartition]
    ) -> Result:
        """Returns the answer of the first of a route, or of the second if that is slow or fails.

        Others are asked after these. Raises the failure of the first. `places` are all that the call asks for.
        """
        asking = _Asking(call, deadline, kind, places, spare=1)
        members = [route.first] if route.second is None else [route.first, route.second]
        answer = await self._first_of(members, {*members}, asking)
        if answer is None:
            raise next(iter(asking.failures.values()))
        return answer

    async def _first_of(
        self, members: Sequence[Member], hedges: Collection[Member], asking: _Asking[Result]
    ) -> Result | None:
        left = deque(members)

        async def attempt() -> Result | None:
            member = left.popleft()
            try:
                return await self._ask(member, asking, others=len(left) + asking.spare)
            except (NotServedError, UnreachableError, BoundsError) as failure:
                asking.failures[member] = failure
                return None

        while left:
            if left[0] != self.view.me and len(left) > 1 and left[1] in hedges:
                answer = await self.hedging.first_of(asking.kind, attempt, self.peer_of(left[0]), asking.wait_s)
            else:
                answer = await attempt()
            if answer is not None:
                return answer
            if self.monotonic() >= asking.deadline:
                break
        return None

    async def _last_chance(self, shard: StorePartition, asking: _Asking[Result]) -> Result:
        """Waits for one that is behind, and, while another holder is silent, for both: that one may be fresh enough."""
        failures, deadline = asking.failures, asking.deadline
        behind = next((member for member, failure in failures.items() if isinstance(failure, BoundsError)), None)
        if behind is None:
            outside = NotServedError(f"{self.view.me.instance} has not joined the group yet: try again")
            raise next(iter(failures.values()), outside)
        holders = self.view.shard_map.holders(*shard)
        silent = [member for member in holders if isinstance(failures.get(member), (NotServedError, UnreachableError))]
        while silent and self.monotonic() + 2 * _PAUSE_S < deadline:
            for member in (*silent, behind):
                with suppress(NotServedError, UnreachableError, BoundsError):
                    return await self._ask(member, asking, others=1)
            await asyncio.sleep(_PAUSE_S)
        try:
            return await self._ask(behind, asking, others=0)
        except UnreachableError as gone:  # that it is behind says more than that it did not say so again
            raise failures[behind] from gone

    async def _ask(self, member: Member, asking: _Asking[Result], *, others: int) -> Result:
        now, wait_s, deadline = self.monotonic(), asking.wait_s, asking.deadline
        silent_at = now + wait_s + self.peer_timeout_s  # who has not answered by then does not answer at all
        until = min(silent_at, now + (deadline - now) / 2 + wait_s, deadline) if others else deadline
        if member == self.view.me:
            return await asking.call(self.local, until)
        _check_features(member, asking.needs)
        peer = self.peer_of(member)
        try:
            answer = await asking.call(peer.reads, until)
        except LookupFailedError as failure:
            self._note_failure(peer, failure, asking.places, until >= silent_at)
            raise
        self.metrics.forwards.labels("answered").inc()
        served = _served(answer, asking.places)
        for place in asking.places:
            if place in served:
                peer.answered(place)
            else:
                peer.failed(place)
        return answer

    def _note_failure(
        self, peer: RoutedPeer, failure: LookupFailedError, places: Collection[StorePartition], had_time: bool
    ) -> None:
        match failure:
            case UnreachableError():
                outcome = "unreachable"
                if had_time or not isinstance(failure, TimedOutError):
                    peer.failed(None)
            case NotServedError():
                outcome = "not_served"
                for place in () if isinstance(failure, PeerOverloadedError) else places:
                    peer.failed(place)
            case _:
                outcome = "refused"
                for place in places:
                    peer.answered(place)
        self.metrics.forwards.labels(outcome).inc()


def _check_features(member: Member, needs: frozenset[str]) -> None:
    """Raises NotServedError for a member that lacks a feature, before it is asked."""
    missing = ", ".join(sorted(needs - member.features))
    if missing:
        raise NotServedError(f"{member.instance} is of an older release, without {missing}: upgrade it")


def _served(answer: object, places: Collection[StorePartition]) -> Collection[StorePartition]:
    """Returns the places that an answer has something of: a batch of several may lack some."""
    if len(places) == 1 or not isinstance(answer, api.BatchGetStatesResponse):
        return places
    partitions = {freshness.partition for freshness in answer.freshness}
    return {place for place in places if place[1] in partitions}
