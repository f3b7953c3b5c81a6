"""Reads states at a steady rate from the instances that report SERVING."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from drivers.state_checks import Seen, StateChecks
from drivers.state_writer import StateLog, hot_index
from statecast.query.v1.query_pb2 import Absence, Bounds, Freshness, KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse, GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit.query_cluster import STORE
from testkit.waiting import scaled

SERVICE = "statecast.query.v1.QueryService"
AGAIN_S = 0.1
OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
ATTEMPT_S = 2.0
READ_S = 10.0
BATCH_KEYS = 20
BATCH_EVERY = 5
IN_FLIGHT = 8
LEFT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
ABSENCE = "statecast-absence-bin"
FRESHNESS = "statecast-freshness-bin"


class QueryChannel:
    """A connection to one instance, watched for as long as it is open."""

    def __init__(self, name: str, address: str) -> None:
        """Connects; healthy once the instance says so."""
        self.name = name
        self.healthy = False
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._health: Any = HealthStub(self._channel)
        self.stub: Any = QueryServiceStub(self._channel)
        self._watching = asyncio.create_task(self._watch())

    def failed(self) -> None:
        """Notes that a call was not answered: unhealthy until the instance says otherwise anew."""
        if self.healthy:
            self.healthy = False
            self._watching.cancel()
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Closes the connection."""
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._channel.close()

    async def _watch(self) -> None:
        while True:
            try:
                async for answer in self._health.Watch(HealthCheckRequest(service=SERVICE)):
                    self.healthy = answer.status == HealthCheckResponse.SERVING
            except grpc.aio.AioRpcError:
                self.healthy = False
            await asyncio.sleep(AGAIN_S)


@dataclass(frozen=True)
class Unanswered:
    """An instance did not answer a call, and the reader put the same call to another."""

    instance: str
    why: str


class StateReader:
    """One caller with a list of addresses; it prefers the first.

    Every fifth read is a batch with the positions that the reader holds. The other reads get one key, at the reader's
    last position or later. A call that its instance does not answer goes to the next healthy one, and into
    `unanswered`. A read fails if no instance answers it, or if the answer is an error.
    """

    def __init__(self, home: str, channels: Sequence[QueryChannel], log: StateLog, keys: Sequence[str]) -> None:
        """Reads through the instance `home`; `channels` are to all instances."""
        self.home = home
        self.checks = StateChecks(log, f"reader of {home}")
        self.failed: list[str] = []
        self.unanswered: list[Unanswered] = []
        self.answered: Counter[str] = Counter()
        self._channels = sorted(channels, key=lambda channel: channel.name != home)
        self._log = log
        self._keys = keys
        self._chance = random.Random(home)

    async def read(self, rate: float) -> None:
        """Makes `rate` calls a second, or as many as are answered, until it is cancelled."""
        await asyncio.gather(*(self._read_on(IN_FLIGHT / rate) for _ in range(IN_FLIGHT)))

    async def _read_on(self, pause_s: float) -> None:
        while True:
            began = time.monotonic()
            if self._chance.random() < 1 / BATCH_EVERY:
                await self._batch()
            else:
                await self._get()
            await asyncio.sleep(max(0.0, began + pause_s - time.monotonic()))

    async def _get(self) -> None:
        key = self._key()
        request = GetStateRequest(store=STORE, key=StateKey(group=key))
        held = self.checks.seen.get(key)
        if held is not None:
            request.bounds.CopyFrom(Bounds(at_least=held.position))
        began = time.monotonic()
        answer = await self._answer(lambda stub, left: stub.GetState(request, timeout=left))
        if isinstance(answer, grpc.aio.AioRpcError):
            trailing = dict(answer.trailing_metadata() or ())
            absence = Absence.FromString(_encoded(trailing[ABSENCE]))
            self.checks.absence(key, held, absence, Freshness.FromString(_encoded(trailing[FRESHNESS])), began)
        elif answer is not None:
            self.checks.value(key, held, answer.state, answer.freshness, began)

    async def _batch(self) -> None:
        keys = sorted({self._key() for _ in range(BATCH_KEYS)})
        held = {key: self.checks.seen[key] for key in keys if key in self.checks.seen}
        after = {key: seen.position for key, seen in held.items()}
        queries = [KeyQuery(key=StateKey(group=key), after=after.get(key)) for key in keys]
        request = BatchGetStatesRequest(store=STORE, keys=queries)
        began = time.monotonic()
        answer = await self._answer(lambda stub, left: stub.BatchGetStates(request, timeout=left))
        if isinstance(answer, BatchGetStatesResponse):
            self._take_batch(keys, held, answer, began)

    def _take_batch(self, keys: list[str], held: dict[str, Seen], answer: BatchGetStatesResponse, began: float) -> None:
        fresh_by = {each.partition: each for each in answer.freshness}
        left_out = dict(held)
        for result in answer.results:
            key = keys[result.index]
            left_out.pop(key, None)
            if result.HasField("error"):
                self.failed.append(f"{key} of a batch at {self.home}: {result.error.code} {result.error.message}")
                continue
            freshness = fresh_by[self._log.partition_of[key]]
            if result.HasField("state"):
                self.checks.value(key, held.get(key), result.state, freshness, began)
            else:
                self.checks.absence(key, held.get(key), result.absence, freshness, began)
        for key, seen in left_out.items():
            self.checks.unchanged(key, seen, fresh_by[self._log.partition_of[key]], began)

    async def _answer(self, ask: Callable[[Any, float], Awaitable[Any]]) -> Any:
        """Returns the answer, the error of an absent key, or None when the read has failed."""
        deadline = time.monotonic() + scaled(READ_S)
        why = "no instance is healthy"
        while (left := deadline - time.monotonic()) > 0:
            channel = next((each for each in self._channels if each.healthy), None)
            if channel is None:
                await asyncio.sleep(0.01)
                continue
            try:
                answer = await ask(channel.stub, min(scaled(ATTEMPT_S), left))
            except grpc.aio.AioRpcError as error:
                why = f"{channel.name}: {error.code().name} {error.details()}"
                if error.code() in LEFT:
                    channel.failed()
                    self.unanswered.append(Unanswered(channel.name, why))
                    continue
                if ABSENCE not in dict(error.trailing_metadata() or ()):
                    break
                answer = error
            self.answered[channel.name] += 1
            return answer
        self.failed.append(why)
        return None

    def _key(self) -> str:
        return self._keys[hot_index(self._chance, len(self._keys))]


def _encoded(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
