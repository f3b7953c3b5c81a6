"""Lookups that are passed on, from bytes to bytes: each is part of one batch to the peer that is to answer it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple, TypeAlias

import grpc

from query_service.cluster.shard_map import Member, StorePartition
from query_service.cluster.view import View
from query_service.errors import (
    LookupFailedError,
    NotServedError,
    TimedOutError,
    UnreachableError,
)
from query_service.lookups.hedging import Hedging
from query_service.lookups.preference import Preference
from query_service.metrics import MethodCalls, Metrics, outcome_of
from query_service.serving.call_limits import CallLimits, InFlight
from query_service.serving.peers import Peer
from query_service.storage.replica import Replica
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.shard.v1 import shard_service_pb2 as shard

_NOT_SERVED = grpc.StatusCode.UNAVAILABLE.value[0]  # the code of a key's error

Batches: TypeAlias = Callable[[bytes, None], bytes | None]
"""Answers a `ShardService.BatchGetStates` from this instance's own stores, as a FastAnswer does."""


class Route(NamedTuple):
    """Who is asked for a partition, and who when that one is late or fails, if anybody."""

    first: Member
    second: Member | None


@dataclass(eq=False)
class Forwards:
    """Asks the replicas that RoutedLookup would ask first and next, and leaves everything else to it.

    Each of them gets `timeout_s`, and half of the time that a caller has left.
    """

    view: View
    peer_of: Callable[[Member], Peer]
    preference: Preference
    hedging: Hedging
    here: Batches
    timeout_s: float
    limits: CallLimits
    metrics: Metrics

    def route(self, place: StorePartition) -> Route | Replica | None:
        """Returns whom to ask for a partition; the own replica when no peer is asked first, None for nobody."""
        me, own = self.view.me, self.view.replicas.get(place)
        serves = own is not None and own.progress.serving
        ranked = self.preference.order(place)
        usable = (member for member in ranked if (serves if member == me else self.peer_of(member).usable(place)))
        first = next(usable, None)
        if first is None or first == me:
            return None if first is None else own
        second = next(usable, None)
        return Route(first, second if second in self.view.shard_map.holders(*place) else None)

    def patience_s(self, left_s: float | None) -> float:
        """Returns how long a peer is waited for by a caller that has so long left; None if it set no deadline."""
        return min(self.timeout_s, self.limits.seconds(left_s) / 2)

    async def batch(
        self, kind: str, route: Route, request: shard.BatchGetStatesRequest, patience_s: float
    ) -> api.BatchGetStatesResponse | None:
        """Returns an answer, hedged as calls of a kind are; None when the servicer has to look the keys up.

        The same holds for keys that no Freshness names.
        """
        members = iter(route)

        async def attempt() -> api.BatchGetStatesResponse | None:
            member = next(members, None)
            if member is None:
                return None
            return self._here(request) if member == self.view.me else await self._ask(member, request, patience_s)

        if route.second is None:
            return await attempt()
        answer = await self.hedging.first_of(kind, attempt, self.peer_of(route.first), 0.0)
        return await attempt() if answer is None else answer

    def _here(self, request: shard.BatchGetStatesRequest) -> api.BatchGetStatesResponse | None:
        encoded = self.here(request.SerializeToString(), None)
        return None if encoded is None else shard.BatchGetStatesResponse.FromString(encoded).answer

    async def _ask(
        self, member: Member, request: shard.BatchGetStatesRequest, patience_s: float
    ) -> api.BatchGetStatesResponse | None:
        peer, query = self.peer_of(member), request.query
        try:
            answer = await peer.batch(request, self.limits.monotonic() + patience_s)
        except UnreachableError as failure:
            self.metrics.forwards.labels("unreachable").inc()
            if patience_s >= self.timeout_s or not isinstance(failure, TimedOutError):
                peer.failed(None)
            return None
        except NotServedError as failure:
            self.metrics.forwards.labels("not_served").inc()
            if not _is_of_the_batch(failure):
                for each in query.keys:
                    self._failed(peer, query.store, each)
            return None
        except LookupFailedError:  # the servicer finds out whose failure it is
            self.metrics.forwards.labels("refused").inc()
            return None
        self.metrics.forwards.labels("answered").inc()
        for freshness in answer.freshness:
            freshness.forwarded = True
            peer.answered((query.store, freshness.partition))
        for result in answer.results:
            if result.error.code == _NOT_SERVED:
                self._failed(peer, query.store, query.keys[result.index])
        return answer

    def _failed(self, peer: Peer, store: str, key_query: query_pb2.KeyQuery) -> None:
        peer.failed((store, self.view.partition_of(store, key_query.key.group)))


def _is_of_the_batch(failure: NotServedError) -> bool:
    """Whether it says something of all the keys together, and not of what the peer holds."""
    cause = failure.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and cause.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def hold(answer: "asyncio.Future[bytes | None]", in_flight: InFlight, size: int, calls: MethodCalls) -> None:
    """Holds memory for a public call that waits for a peer, and counts it, until there is an answer."""
    began = perf_counter()
    in_flight.add(size)
    calls.in_flight += 1

    def ended(_: object) -> None:
        in_flight.add(-size)
        calls.in_flight -= 1
        if answer.cancelled():
            calls.ended("interrupted", perf_counter() - began)
        elif (failure := answer.exception()) is not None:
            calls.ended(outcome_of(failure), perf_counter() - began)
        elif answer.result() is not None:  # else the servicer counts it
            calls.ended("ok", perf_counter() - began)

    answer.add_done_callback(ended)
