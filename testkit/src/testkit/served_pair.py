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
from query_service.reads.hedge import Hedging
from query_service.reads.status import ending_of
from query_service.server.grpcio_server import GrpcioServer, Handler, handler_of
from query_service.server.limits import Context
from query_service.server.methods import SHARD, Method
from query_service.server.peers import Peer, Peers
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as api
from statecast.state.v1 import state_pb2
from testkit.served_stores import ME, PEER, ServedStores
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
    """The internal service of an instance. Nobody is answered while the gate is closed."""

    def __init__(self, stores: ServedStores) -> None:
        """Is open; nothing listens yet."""
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[str] = []
        """The methods that were called to look something up."""
        self.failure: grpc.StatusCode | None = None
        """The error that each lookup ends with, if any."""
        self._server = GrpcioServer(1000, -1, None)
        self._server.add_handlers(SHARD, {name: self._gated(method) for name, method in stores.shards.items()})

    async def start(self, address: str) -> None:
        """Listens."""
        self._server.bind_address(address)
        await self._server.start()

    async def stop(self) -> None:
        """Ends all calls and connections."""
        await self._server.stop(0)

    def _gated(self, method: Method) -> Handler:
        handler = handler_of(method)

        async def gated(request: bytes, call: Context) -> bytes:
            is_lookup = method.name != "ListPartitions"
            if is_lookup:
                self.asked.append(method.name)
            await self.gate.wait()
            if is_lookup and self.failure is not None:
                await call.abort(self.failure, "as the test says")
            return await handler(request, call)

        return gated


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
        here.route(peers.of, Hedging(hedge_after_s, timeout_s, 0.1, here.metrics, clock), timeout_s, clock)

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
            ranked = view.shard_map.ranked(*view.shard_of("keyed", group))
            if (ranked[0] == self.member) == there:
                yield group

    def row_there(self) -> str:
        """Returns such a group of the peer, after both have written a row of it."""
        group = next(self.groups())
        self.write("keyed", group, b"row")
        return group

    def answer(self, method: str, request: Message, left_s: float | None = None) -> "bytes | asyncio.Future[bytes]":
        """Returns the answer of `here` to a public call. Raises LookupFailedError."""
        return self.here.queries[method].answer(request.SerializeToString(), left_s)

    async def answered(self, method: str, request: Message) -> bytes:
        """Returns the response of `here` to a public call. Raises LookupFailedError."""
        answer = self.answer(method, request)
        return answer if isinstance(answer, bytes) else await answer

    def forwarded(self, method: str, request: Message, left_s: float | None = None) -> "asyncio.Future[bytes]":
        """Returns the answer of `here` to a call that has to wait for the peer."""
        answer = self.answer(method, request, left_s)
        assert isinstance(answer, asyncio.Future)
        return answer

    def is_usable(self, group: str) -> bool:
        """Returns whether the peer is asked before others for a group of the first store."""
        return self.peer.usable(self.here.view.shard_of("keyed", group))

    async def until_asked(self, calls: int = 1) -> None:
        """Waits until the peer has been asked so often."""
        asked = self.server.asked
        await wait_until_async(lambda: len(asked) >= calls, lambda: f"the peer was asked for {asked}", 10, 0.005)

    def metric(self, name: str, **labels: str) -> float:
        """Returns a metric of `here` by its name after `query_service_`; 0 when there is none yet."""
        return self.here.metrics.registry.get_sample_value(f"query_service_{name}", labels) or 0.0


async def outcome(answer: "asyncio.Future[bytes]") -> bytes | Ending:
    """Returns an answer that was waited for, or how it ends the call."""
    try:
        (encoded,) = await asyncio.gather(answer)  # not at once when it is done: its callbacks count the call first
    except LookupFailedError as failure:
        return ending_of(failure)
    return encoded
