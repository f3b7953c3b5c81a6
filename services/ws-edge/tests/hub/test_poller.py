"""Ticks become batches, and a slow or broken instance never makes them pile up."""

import asyncio
import time
from collections.abc import AsyncIterator
from unittest.mock import patch

import grpc
import pytest

from statecast.orders.v1.order_pb2 import Order
from ws_edge.authorization import Consumer
from ws_edge.hub.hub import Hub
from ws_edge.hub.live_lanes import LiveLanes
from ws_edge.hub.poller import FAILED_REST_S, MOST_REST_S, SLOW_S, Poller, rest
from ws_edge.metrics import Metrics
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.states import StoreKey
from ws_edge.stores import SHIPPED, read
from ws_edge.testing.edge import FakeQueryService, Recorder, until

BATCH_KEYS = 100
STAFF = Consumer("", "operator", True)


def key(number: int) -> StoreKey:
    return StoreKey("orders-by-key", f"order-{number}")


@pytest.fixture
async def client(service: FakeQueryService) -> AsyncIterator[QueryClient]:
    client = QueryClient(Addresses([service.address], time.monotonic, 0.0), timeout=30.0, batch_limit=1000)
    yield client
    await client.close()


@pytest.fixture
async def hub(client: QueryClient) -> AsyncIterator[Hub]:
    """A hub whose poller runs."""
    hub = Hub(time.monotonic, 0.005, 60.0)
    metrics = Metrics()
    live = LiveLanes(hub, client, metrics, time.monotonic, max_wait=30.0, keys_per_s=1e6, lane_keys=1000)
    task = asyncio.create_task(Poller(hub, client, read(SHIPPED), metrics, time.monotonic, live, BATCH_KEYS).run())
    yield hub
    task.cancel()
    await asyncio.wait({task})


async def test_a_burst_of_new_subscriptions_is_one_batch(hub: Hub, service: FakeQueryService) -> None:
    phones = [Recorder() for _ in range(100)]
    for number, phone in enumerate(phones):
        hub.subscribe(phone, STAFF, key(number), None, 60.0)
    await until(lambda: all(phone.told for phone in phones))

    assert service.calls["BatchGetStates"] == 1
    assert len(service.asked) == 100


async def test_a_change_reaches_the_subscriber_with_the_next_tick(hub: Hub, service: FakeQueryService) -> None:
    phone = Recorder()
    hub.subscribe(phone, STAFF, key(1), None, 0.02)
    await until(lambda: bool(phone.told))
    service.put(key(1), Order(order_id="order-1"))
    await until(lambda: phone.told[-1] == "1")

    assert phone.told == ["snapshot", "unknown!", "1"]


async def test_while_an_instance_is_slow_it_has_one_batch_and_keys_are_in_the_next_once(
    hub: Hub, service: FakeQueryService
) -> None:
    service.delay = 0.2
    for number in range(10):
        hub.subscribe(Recorder(), STAFF, key(number), None, 0.01)
        await asyncio.sleep(0.01)
    await until(lambda: service.asked[key(0)] >= 4)

    assert service.most_at_once == 1
    assert len(service.asked) == 10


async def test_however_many_come_back_at_once_an_instance_has_one_call_at_a_time(
    hub: Hub, service: FakeQueryService
) -> None:
    service.delay = 0.005
    phones = [Recorder() for _ in range(20 * BATCH_KEYS)]
    for number, phone in enumerate(phones):
        hub.subscribe(phone, STAFF, key(number), None, 60.0)
    await until(lambda: all(phone.told for phone in phones))

    assert (service.most_at_once, service.calls["BatchGetStates"]) == (1, 20)
    assert set(service.asked.values()) == {1}


async def called(service: FakeQueryService, times: int) -> None:
    await until(lambda: service.calls["BatchGetStates"] >= times)


async def test_neither_new_keys_nor_timed_ones_wait_for_ever(hub: Hub, service: FakeQueryService) -> None:
    timed = [Recorder() for _ in range(BATCH_KEYS)]
    for number, phone in enumerate(timed):
        hub.subscribe(phone, STAFF, key(number), None, 0.005)
    await until(lambda: all(phone.told for phone in timed))
    service.delay = 0.005
    rounds, fresh = service.asked[key(0)], list[Recorder]()
    while service.asked[key(0)] < rounds + 3:
        assert len(fresh) < 100 * BATCH_KEYS
        calls = service.calls["BatchGetStates"]
        for _ in range(2 * BATCH_KEYS):
            fresh.append(Recorder())
            hub.subscribe(fresh[-1], STAFF, key(BATCH_KEYS + len(fresh)), None, 60.0)
        await called(service, calls + 1)
    await until(lambda: all(phone.told for phone in fresh))

    assert service.most_at_once == 1


async def test_a_batch_that_breaks_is_asked_for_again(hub: Hub, client: QueryClient, service: FakeQueryService) -> None:
    phone = Recorder()
    with patch.object(client, "ask", side_effect=RuntimeError("a defect")) as broken:
        hub.subscribe(phone, STAFF, key(1), None, 0.5)
        await until(lambda: broken.call_count > 1)
        assert "snapshot" not in phone.told
    await until(lambda: phone.told[-2:] == ["snapshot", "unknown!"])

    assert service.asked[key(1)] >= 1


def test_a_lane_rests_as_long_as_a_slow_batch_took_and_does_not_hammer_who_does_not_answer() -> None:
    assert rest(SLOW_S, answered=True) == 0.0
    assert rest(0.4, answered=True) == 0.4
    assert rest(60.0, answered=True) == MOST_REST_S
    assert rest(0.0, answered=False) == FAILED_REST_S


async def test_a_lane_rests_after_each_batch_by_what_came_of_it(hub: Hub, service: FakeQueryService) -> None:
    service.delay = 0.15
    with patch("ws_edge.hub.poller.rest", return_value=0.0) as rests:
        hub.subscribe(Recorder(), STAFF, key(1), None, 0.01)
        await until(lambda: rests.call_count >= 2)
        service.failing = grpc.StatusCode.RESOURCE_EXHAUSTED
        await until(lambda: rests.call_args.args[1] is False)
    took, answered = rests.call_args_list[0].args

    assert answered
    assert took >= service.delay
