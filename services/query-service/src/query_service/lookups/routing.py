"""Decides whom to ask for a partition, and whom next when that one cannot answer."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from query_service.cluster.peer_memory import Shard
from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.errors import AbsentError, BoundsError, LookupFailedError, NotServedError, UnreachableError
from query_service.lookups.hedging import Hedging, SlowPeer
from query_service.lookups.lookup import Lookup
from query_service.metrics import Metrics

_ROUNDS = 2
_PAUSE_S = 0.05

Answer = TypeVar("Answer")
Ask = Callable[[Lookup, float], Awaitable[Answer]]


class AskedPeer(SlowPeer, Protocol):
    """A peer as routing sees it; see PeerMemory for the methods."""

    @property
    def lookup(self) -> Lookup:
        """Lookups in the peer's own stores."""

    def usable(self, shard: Shard) -> bool:
        """See PeerMemory."""

    def answered(self, shard: Shard | None) -> None:
        """See PeerMemory."""


class AskedPeers(Protocol):
    """All peers, by member."""

    def of(self, member: Member) -> AskedPeer:
        """Returns the peer of a member."""


class Routing:
    """Asks the owner first and then the other replicas; each call makes at most one hop, because peers never forward.

    Who failed lately is asked last. When a peer is slow, the next replica that has not failed lately is asked as well
    (see Hedging); each holds itself to the bounds of the request. A second round, a moment later, covers the time in
    which the instances disagree about who holds the partition.
    """

    def __init__(
        self,
        view: View,
        local: Lookup,
        peers: AskedPeers,
        hedging: Hedging,
        peer_timeout_s: float,
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        """Gives each replica `peer_timeout_s` while there are others left to ask."""
        self._view = view
        self._local = local
        self._peers = peers
        self._hedging = hedging
        self._peer_timeout_s = peer_timeout_s
        self._forwards = metrics.forwards
        self._monotonic = monotonic

    async def first_answer(
        self, shard: Shard, ask: Ask[Answer], deadline: float, patience_s: float = 0.0, kind: str = ""
    ) -> tuple[Answer, bool]:
        """Returns the first answer and whether a peer gave it; `ask` puts the question to a Lookup until a time.

        `patience_s` is how long the question itself may wait, on top of the time for an answer; questions of one `kind`
        take comparable times. Raises what the
        replica raised whose failure says most: AbsentError and InvalidRequestError at once, else BoundsError, else
        NotServedError or UnreachableError of the first.
        """
        for remaining in reversed(range(_ROUNDS)):
            try:
                return await self._round(shard, ask, deadline, patience_s, kind)
            except (NotServedError, UnreachableError):
                if not remaining or self._monotonic() + _PAUSE_S >= deadline:
                    raise
            await asyncio.sleep(_PAUSE_S)
        raise AssertionError("the last round returns or raises")

    async def _round(
        self, shard: Shard, ask: Ask[Answer], deadline: float, patience_s: float, kind: str
    ) -> tuple[Answer, bool]:
        failures: dict[Member, LookupFailedError] = {}
        usable, rest = self._candidates(shard)
        left = deque(usable + rest)
        hedges = {*usable}.intersection(self._view.shard_map.holders(*shard))

        async def attempt() -> tuple[Answer, bool] | None:
            member = left.popleft()
            try:
                return await self._ask(member, shard, ask, self._until(deadline, len(left), patience_s))
            except (NotServedError, UnreachableError, BoundsError) as failure:
                failures[member] = failure
                return None

        while left:
            if left[0] != self._view.me and len(left) > 1 and left[1] in hedges:
                peer = self._peers.of(left[0])
                answer = await self._hedging.first_of(kind, attempt, peer, patience_s)
            else:
                answer = await attempt()
            if answer is not None:
                return answer
            if self._monotonic() >= deadline:
                break
        return await self._last_chance(shard, ask, deadline, patience_s, failures)

    async def _last_chance(
        self,
        shard: Shard,
        ask: Ask[Answer],
        deadline: float,
        patience_s: float,
        failures: dict[Member, LookupFailedError],
    ) -> tuple[Answer, bool]:
        """Waits for one that is behind, and, while another holder is silent, for both: that one may be fresh enough."""
        behind = next((member for member, failure in failures.items() if isinstance(failure, BoundsError)), None)
        if behind is None:
            raise next(iter(failures.values()), None) or NotServedError(
                f"{self._view.me.instance} has not joined the group yet: try again"
            )
        holders = self._view.shard_map.holders(*shard)
        silent = [member for member in holders if isinstance(failures.get(member), (NotServedError, UnreachableError))]
        while silent and self._monotonic() + 2 * _PAUSE_S < deadline:
            for member in (*silent, behind):
                try:
                    return await self._ask(member, shard, ask, self._until(deadline, 1, patience_s))
                except (NotServedError, UnreachableError, BoundsError):
                    continue
            await asyncio.sleep(_PAUSE_S)
        try:
            return await self._ask(behind, shard, ask, deadline)
        except UnreachableError as gone:  # that it is behind says more than that it did not say so again
            raise failures[behind] from gone

    def _candidates(self, shard: Shard) -> tuple[list[Member], list[Member]]:
        ranked = self._view.shard_map.ranked(*shard)
        me = self._view.me
        usable = [member for member in ranked if member == me or self._peers.of(member).usable(shard)]
        return usable, [] if len(usable) == len(ranked) else [member for member in ranked if member not in usable]

    def _until(self, deadline: float, others: int, patience_s: float) -> float:
        if not others:
            return deadline
        now = self._monotonic()
        return min(now + patience_s + self._peer_timeout_s, now + (deadline - now) / 2 + patience_s, deadline)

    async def _ask(self, member: Member, shard: Shard, ask: Ask[Answer], until: float) -> tuple[Answer, bool]:
        if member == self._view.me:
            return await ask(self._local, until), False
        peer = self._peers.of(member)
        try:
            answer = await ask(peer.lookup, until)
        except UnreachableError:
            self._forwards.labels("unreachable").inc()
            peer.failed(None)
            raise
        except NotServedError:
            self._forwards.labels("not_served").inc()
            peer.failed(shard)
            raise
        except LookupFailedError as failure:
            self._forwards.labels("refused").inc()
            peer.answered(shard)
            if isinstance(failure, AbsentError):
                failure.freshness.forwarded = True
            raise
        self._forwards.labels("answered").inc()
        peer.answered(shard)
        return answer, True
