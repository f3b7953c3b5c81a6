"""How many lookups a second one client gets out of the query service: single gets and batches."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from typing import Any

import grpc

from bench.results import percentiles
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, GetStateRequest, ScanStatesRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey

STORE = "orders-by-key"
MEASURE_S = 8.0
GETS_IN_FLIGHT = 32
BATCHES_IN_FLIGHT = 2
BATCH_KEYS = 500


async def known_orders(address: str, count: int) -> list[str]:
    """Returns the ids of `count` orders of the simulator that exist now, the newest first.

    Raises LookupError for fewer.
    """
    order_ids: list[str] = []
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        query = ScanStatesRequest(store=STORE, reverse=True)
        while len(order_ids) < count:
            page = await stub.ScanStates(query)
            order_ids += [state.key.group for state in page.states if state.key.group.startswith("order-")]
            query.page_token = page.next_page_token
            if not query.page_token and len(order_ids) < count:
                raise LookupError(f"{STORE} holds {len(order_ids)} orders, {count} are needed")
    return order_ids[:count]


async def measure_lookups(address: str, groups: Sequence[str], store: str = STORE) -> dict[str, float]:
    """Loads one instance with keys of a store that exist. Raises grpc.RpcError when a lookup fails."""
    gets = await measure_gets(address, groups, store)
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        keys = [KeyQuery(key=StateKey(group=group)) for group in groups[:BATCH_KEYS]]
        batch = BatchGetStatesRequest(store=store, keys=keys)
        known = BatchGetStatesRequest(store=store)
        for result in (await stub.BatchGetStates(batch)).results:
            if result.HasField("state"):
                known.keys.add(key=batch.keys[result.index].key, after=result.state.position)
        return {
            **gets,
            "batch_keys_per_s.changed": await _keys_per_s(stub, batch),
            "batch_keys_per_s.unchanged": await _keys_per_s(stub, known),
        }


async def measure_gets(address: str, groups: Sequence[str], store: str = STORE) -> dict[str, float]:
    """Loads one instance with single gets: of keys that it owns, then of others. Raises grpc.RpcError as above."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        owned: list[GetStateRequest] = []
        foreign: list[GetStateRequest] = []
        for group in groups:
            request = GetStateRequest(store=store, key=StateKey(group=group))
            (foreign if (await stub.GetState(request)).freshness.forwarded else owned).append(request)
        return {**await _gets(stub, owned, "owner"), **await _gets(stub, foreign, "forwarded")}


async def _gets(stub: Any, requests: list[GetStateRequest], kind: str) -> dict[str, float]:
    turns = cycle(requests)
    rate, times_ms = await _saturate(lambda: stub.GetState(next(turns)), GETS_IN_FLIGHT)
    return {f"gets_per_s.{kind}": rate, **percentiles("get_ms", times_ms, f".{kind}")}


async def _keys_per_s(stub: Any, batch: BatchGetStatesRequest) -> float:
    rate, _ = await _saturate(lambda: stub.BatchGetStates(batch), BATCHES_IN_FLIGHT)
    return round(rate * len(batch.keys))


async def _saturate(call: Callable[[], Awaitable[object]], in_flight: int) -> tuple[float, list[float]]:
    times_ms: list[float] = []
    start = time.perf_counter()

    async def loop() -> None:
        while (began := time.perf_counter()) - start < MEASURE_S:
            await call()
            times_ms.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(loop() for _ in range(in_flight)))
    return round(len(times_ms) / (time.perf_counter() - start)), times_ms
