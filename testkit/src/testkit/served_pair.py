"""Two instances that hold the same rows: one that a test calls, and its peer, on a real server."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import grpc
from google.protobuf.message import Message

from query_service.errors import LookupFailedError
from query_service.lookups.hedging import Hedging
from query_service.lookups.routing import RoutedLookup
from query_service.serving.call_bytes import handler_of
from query_service.serving.call_limits import Context, ending_of
from query_service.serving.fast_batches import FastBatches, PublicBatches, ShardBatches
from query_service.serving.fast_gets import FastGets, OwnReplicas, PublicGets, ShardGets
from query_service.serving.forwarded_gets import ForwardedGets
from query_service.serving.forwards import Forwards
from query_service.serving.grpc_server import Method, methods_of
from query_service.serving.grpcio_server import GrpcioServer
from query_service.serving.peers import Peer, Peers
from query_service.serving.server import QUERY, SHARD
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2
from testkit.query_service import preference_of
from testkit.served_stores import ME, PEER, AbortedError, FakeCall, ServedStores
from testkit.waiting import wait_until_async

_BACKOFF_S = 60.0  # so that no probe finds a peer again while a test looks at it

Ending = tuple[object, str, object]
"""Status, text and trailing metadata of a call that has failed."""


def get_request(group: str, **fields: Any) -> api.GetStateRequest:
    """Returns a get of a group of the first store, unless the fields say otherwise."""
    return api.GetStateRequest(**{"store": "keyed", "key": state_pb2.StateKey(group=group), **fields})


def batch_request(*groups: str, **fields: Any) -> api.BatchGetStatesRequest:
    """Returns a batch of groups of the first store, unless the fields say otherwise."""
    keys = [query_pb2.KeyQuery(key=state_pb2.StateKey(group=group)) for group in groups]
    return api.BatchGetStatesRequest(**{"store": "keyed", "keys": keys, **fields})


def get_response(encoded: object) -> api.GetStateResponse:
    """Returns the message of an answer to a get."""
    assert isinstance(encoded, bytes)
    return api.GetStateResponse.FromString(encoded)


def batch_response(encoded: object) -> api.BatchGetStatesResponse:
    """Returns the message of an answer to a batch."""
    assert isinstance(encoded, bytes)
    return api.BatchGetStatesResponse.FromString(encoded)


class PeerServer:
    """The internal service of an instance, with its fast answers. Nobody is answered while the gate is closed."""

    def __init__(self, stores: ServedStores) -> None:
        """Is open; nothing listens yet."""
        held = OwnReplicas(stores.view)
        stores.shards.fast = {
            "GetState": ShardGets(FastGets(held, stores.in_flight)).answer,
            "BatchGetStates": ShardBatches(FastBatches(held, stores.in_flight, 1000, None)).answer,
        }
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[str] = []
        """The methods that were called to look something up."""
        self.failure: grpc.StatusCode | None = None
        """What each lookup ends with, if anything."""
        self._server = GrpcioServer(1000, -1, None)
        self._server.add_methods([self._gated(method) for method in methods_of(SHARD, stores.shards)])

    async def start(self, address: str) -> None:
        """Listens."""
        self._server.bind_address(address)
        await self._server.start()

    async def stop(self) -> None:
        """Ends all calls and connections."""
        await self._server.stop(0)

    def _gated(self, method: Method) -> Method:
        async def handler(request: bytes, call: Context) -> bytes:
            is_lookup = method.name != "ListPartitions"
            if is_lookup:
                self.asked.append(method.name)
            await self.gate.wait()
            if is_lookup and self.failure is not None:
                await call.abort(self.failure, "as the test says")
            return await method.handler(request, call)

        return method._replace(handler=handler)


class ServedPair:
    """`here` looks up as an instance does, and forwards to `there` over `peers`: `async with ServedPair() as pair`."""

    def __init__(
        self,
        epoch: int = 77,
        in_flight_bytes: int = 1 << 30,
        response_bytes: int = 1 << 24,
        *,
        monotonic: Callable[[], float] | None = None,
        hedge_after_s: float = 0.0,
        timeout_s: float = 5.0,
    ) -> None:
        """Both are empty. Lookups have the clock of the stores, which tests move, unless `monotonic` is another."""
        self.member = replace(PEER, shard_address=f"unix-abstract:query-service-{uuid4().hex}")
        here = self.here = ServedStores(epoch, in_flight_bytes, response_bytes, peer=self.member)
        self.there = ServedStores(epoch, me=self.member, peer=ME)
        self.server = PeerServer(self.there)
        clock = monotonic or here.clock
        peers = self.peers = Peers(_BACKOFF_S, timeout_s, clock)
        preference, queries, view, metrics = preference_of(here.view, peers.of), here.queries, here.view, here.metrics
        hedging = Hedging(hedge_after_s, timeout_s, 0.1, metrics, clock)
        local, limits = here.shards.local, queries.query_limits
        queries.lookup = RoutedLookup(view, local, peers.of, preference, hedging, timeout_s, limits, metrics, clock)
        queries.limits = queries.limits._replace(monotonic=clock)
        held, owned = OwnReplicas(view), OwnReplicas(view, preference)
        own = ShardBatches(FastBatches(held, here.in_flight, 1000, None)).answer
        forwards = Forwards(view, peers.of, preference, hedging, own, timeout_s, queries.limits, metrics)
        calls = metrics.calls.of("GetState")
        batches = FastBatches(owned, here.in_flight, 1000, queries.limits.response_bytes, forwards)
        queries.fast = {
            "GetState": PublicGets(FastGets(owned, here.in_flight, ForwardedGets(forwards, calls, 128)), calls).answer,
            "BatchGetStates": PublicBatches(batches, metrics).answer,
        }

    async def __aenter__(self) -> Self:
        await self.server.start(self.member.shard_address)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.peers.keep(())
        await self.server.stop()

    @property
    def peer(self) -> Peer:
        """The peer `there`, as `here` knows it."""
        return self.peers.of(self.member)

    def write(self, store: str, key: str, payload: bytes | None, seconds: int | None = None) -> None:
        """Applies a record to both, as `ServedStores.write` does."""
        for stores in (self.here, self.there):
            stores.write(store, key, payload, seconds)

    def note_purged(self, offset: int) -> None:
        """Notes for all replicas of both up to where deletions have been purged."""
        for stores in (self.here, self.there):
            for replica in stores.view.replicas.values():
                replica.store.note_purged(offset)

    def move_clocks(self, seconds: float) -> None:
        """Moves the clocks of the replicas of both."""
        for stores in (self.here, self.there):
            stores.clock.now += seconds

    def groups(self, *, there: bool = True) -> Iterator[str]:
        """Returns groups of the first store that are asked of the peer first, or else of this instance."""
        view = self.here.view
        for group in map(str, count()):
            ranked = view.shard_map.ranked("keyed", view.partition_of("keyed", group))
            if (ranked[0] == self.member) == there:
                yield group

    def fast(
        self, method: str, request: Message, left_s: float | None = None
    ) -> "bytes | asyncio.Future[bytes | None] | None":
        """Returns the fast answer of `here` to a public call."""
        return self.here.queries.fast[method](request.SerializeToString(), left_s)

    def forwarded(self, method: str, request: Message, left_s: float | None = None) -> "asyncio.Future[bytes | None]":
        """Returns the fast answer of `here` to a call that it passes on."""
        answer = self.fast(method, request, left_s)
        assert isinstance(answer, asyncio.Future)
        return answer

    async def slow(self, method: str, request: Message) -> bytes | Ending:
        """Returns the response of the servicer of `here`, or how it ends the call."""
        call = FakeCall()
        try:
            respond: Callable[..., Any] = getattr(self.here.queries, method)
            response: Message = await respond(request, call)
        except AbortedError as ending:
            code, details, trailing = ending.args
            return code, details, trailing
        finally:
            call.end()
        return response.SerializeToString()

    async def served(self, request: api.GetStateRequest) -> api.GetStateResponse:
        """Returns the response of a server of `here` to a get, by the fast answer or by the servicer."""
        call: Any = FakeCall()
        handler = handler_of(self.here.queries, QUERY.methods_by_name["GetState"])
        response = await handler(request.SerializeToString(), call)
        call.end()
        return api.GetStateResponse.FromString(response)

    def is_usable(self, group: str) -> bool:
        """Whether the peer is asked before others for a group of the first store."""
        return self.peer.usable(("keyed", self.here.view.partition_of("keyed", group)))

    async def until_asked(self, calls: int = 1) -> None:
        """Waits until the peer has been asked so often."""
        asked = self.server.asked
        await wait_until_async(lambda: len(asked) >= calls, lambda: f"the peer was asked for {asked}", 10, 0.005)

    def metric(self, name: str, **labels: str) -> float:
        """Returns a metric of `here` by its name after `query_service_`; 0 when there is none yet."""
        return self.here.metrics.registry.get_sample_value(f"query_service_{name}", labels) or 0.0


async def outcome(answer: "asyncio.Future[bytes | None]") -> bytes | Ending | None:
    """Returns a forwarded answer, or how it ends the call."""
    try:
        (encoded,) = await asyncio.gather(answer)  # not at once when it is done: its callbacks count the call first
    except LookupFailedError as failure:
        return ending_of(failure)
    return encoded
