"""How many lookups a second one client gets out of the query service: single gets and batches."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc

from bench.results import percentiles
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, GetStateRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey

STORE = "orders-by-key"
MEASURE_S = 8.0
GETS_IN_FLIGHT = 32
BATCHES_IN_FLIGHT = 2
BATCH_KEYS = 500

Call = Callable[[], Awaitable[object]]


async def known_orders(address: str, highest: int, count: int) -> list[str]:
    """The ids of `count` orders that exist now, the newest first. Raises LookupError when there are fewer."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        order_ids: list[str] = []
        number = await _newest_number(stub, highest)
        while len(order_ids) < count and number > 0:
            asked = [f"order-{each:06d}" for each in range(number, max(number - BATCH_KEYS, 0), -1)]
            keys = [KeyQuery(key=StateKey(group=order_id)) for order_id in asked]
            answer = await stub.BatchGetStates(BatchGetStatesRequest(store=STORE, keys=keys))
            order_ids += [asked[result.index] for result in answer.results if result.HasField("state")]
            number -= BATCH_KEYS
    if len(order_ids) < count:
        raise LookupError(f"{STORE} holds {len(order_ids)} orders, {count} are needed")
    return order_ids[:count]


async def _newest_number(stub: Any, start: int) -> int:
    number = start
    while await _exists_near(stub, number + BATCH_KEYS):
        number += BATCH_KEYS
    return number + BATCH_KEYS


async def _exists_near(stub: Any, number: int) -> bool:
    keys = [KeyQuery(key=StateKey(group=f"order-{each:06d}")) for each in range(number, number + BATCH_KEYS)]
    answer = await stub.BatchGetStates(BatchGetStatesRequest(store=STORE, keys=keys))
    return any(result.HasField("state") or result.absence.deleted for result in answer.results)


async def measure_lookups(address: str, groups: Sequence[str], store: str = STORE) -> dict[str, float]:
    """Loads one instance with keys of a store that exist. Raises grpc.RpcError when a lookup fails."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        requests = [_get(group, store) for group in groups]
        owned, foreign = await _by_owner(stub, requests)
        batch = BatchGetStatesRequest(store=store, keys=[KeyQuery(key=each.key) for each in requests[:BATCH_KEYS]])
        known = await _with_positions(stub, batch)
        return {
            **await _gets(stub, owned, "owner"),
            **await _gets(stub, foreign, "forwarded"),
            "batch_keys_per_s.changed": await _keys_per_s(stub, batch),
            "batch_keys_per_s.unchanged": await _keys_per_s(stub, known),
        }


async def _by_owner(
    stub: Any, requests: Sequence[GetStateRequest]
) -> tuple[list[GetStateRequest], list[GetStateRequest]]:
    owned: list[GetStateRequest] = []
    foreign: list[GetStateRequest] = []
    for request in requests:
        answer = await stub.GetState(request)
        (foreign if answer.freshness.forwarded else owned).append(request)
    return owned, foreign


async def _gets(stub: Any, requests: list[GetStateRequest], kind: str) -> dict[str, float]:
    turn = 0

    async def get() -> None:
        nonlocal turn
        turn += 1
        await stub.GetState(requests[turn % len(requests)])

    rate, times_ms = await _saturate(get, GETS_IN_FLIGHT)
    return {f"gets_per_s.{kind}": rate, **percentiles("get_ms", times_ms, f".{kind}")}


async def _with_positions(stub: Any, batch: BatchGetStatesRequest) -> BatchGetStatesRequest:
    answer = await stub.BatchGetStates(batch)
    held = [result for result in answer.results if result.HasField("state")]
    keys = [KeyQuery(key=batch.keys[result.index].key, after=result.state.position) for result in held]
    return BatchGetStatesRequest(store=batch.store, keys=keys)


async def _keys_per_s(stub: Any, batch: BatchGetStatesRequest) -> float:
    rate, _ = await _saturate(lambda: stub.BatchGetStates(batch), BATCHES_IN_FLIGHT)
    return round(rate * len(batch.keys))


async def _saturate(call: Call, in_flight: int) -> tuple[float, list[float]]:
    times_ms: list[float] = []
    start = time.perf_counter()

    async def loop() -> None:
        while (began := time.perf_counter()) - start < MEASURE_S:
            await call()
            times_ms.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(loop() for _ in range(in_flight)))
    return round(len(times_ms) / (time.perf_counter() - start)), times_ms


def _get(group: str, store: str) -> GetStateRequest:
    return GetStateRequest(store=store, key=StateKey(group=group))
