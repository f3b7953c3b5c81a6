"""Keys with interval 0 are held in one long poll per instance, and told as soon as they change."""

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
from ws_edge.hub.poller import Poller
from ws_edge.metrics import Metrics
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.states import StoreKey
from ws_edge.stores import SHIPPED, read
from ws_edge.testing.edge import FakeQueryService, Recorder, until

STAFF = Consumer("", "operator", True)
LANE_KEYS = 40


def key(number: int) -> StoreKey:
    return StoreKey("orders-by-key", f"order-{number}")


def row(number: int) -> Order:
    return Order(order_id=f"order-{number}")


class Live:
    """A hub whose poller runs before a scripted service that holds long polls for half a minute."""

    def __init__(self, service: FakeQueryService) -> None:
        self.hub = Hub(time.monotonic, 0.005, 60.0)
        self.client = QueryClient(Addresses([service.address], time.monotonic, 0.0), timeout=30.0, batch_limit=1000)
        metrics = Metrics()
        self.lanes = LiveLanes(self.hub, self.client, metrics, time.monotonic, 30.0, 1e6, LANE_KEYS)
        self.poller = Poller(self.hub, self.client, read(SHIPPED), metrics, time.monotonic, self.lanes, 1000)

    def watch(self, number: int, interval: float = 0.0) -> Recorder:
        phone = Recorder()
        self.hub.subscribe(phone, STAFF, key(number), None, interval)
        return phone


@pytest.fixture
async def live(service: FakeQueryService) -> AsyncIterator[Live]:
    live = Live(service)
    task = asyncio.create_task(live.poller.run())
    yield live
    task.cancel()
    await asyncio.wait({task})
    await live.client.close()


async def told(phone: Recorder, word: str) -> None:
    await until(lambda: phone.told[-1:] == [word])


async def test_a_change_ends_the_long_poll_and_the_next_one_follows(live: Live, service: FakeQueryService) -> None:
    phone = live.watch(1)
    for offset in (1, 2, 3):
        await until(lambda: service.waiting == 1)
        service.put(key(1), row(1))
        await told(phone, str(offset))

    assert phone.told == ["snapshot", "unknown!", "1", "2", "3"]


async def test_keys_that_join_are_in_the_one_poll_under_way(live: Live, service: FakeQueryService) -> None:
    first = live.watch(1)
    await until(lambda: service.waiting == 1)
    others = [live.watch(number) for number in range(2, 12)]
    await until(lambda: service.held_keys == 11)
    service.put(key(7), row(7))
    await told(others[5], "1")
    service.put(key(1), row(1))
    await told(first, "2")

    assert service.most_waiting == 1


async def test_while_keys_join_one_by_one_the_poll_is_begun_anew_now_and_then(
    live: Live, service: FakeQueryService
) -> None:
    live.watch(0)
    await until(lambda: service.waiting == 1)
    with patch("ws_edge.hub.live_lanes.SETTLED_S", 3600.0):
        for number in range(1, LANE_KEYS):
            await told(live.watch(number), "unknown!")
        polled = service.most_waiting, service.held_keys
        service.put(key(0), row(0))
        await until(lambda: service.held_keys == LANE_KEYS)

    assert polled == (1, 1)
    assert service.most_waiting == 1


async def test_any_number_of_watchers_of_a_live_key_cost_one_poll(live: Live, service: FakeQueryService) -> None:
    phones = [live.watch(1)]
    await until(lambda: service.waiting == 1)
    calls = service.calls["BatchGetStates"]
    phones += [live.watch(1) for _ in range(500)] + [live.watch(1, interval=0.5) for _ in range(500)]
    service.put(key(1), row(1))
    await until(lambda: all(phone.told == ["snapshot", "unknown!", "1"] for phone in phones))
    await until(lambda: service.waiting == 1)

    assert service.calls["BatchGetStates"] == calls + 1


async def test_more_keys_than_a_lane_holds_are_spread_over_lanes_that_wake_alone(
    live: Live, service: FakeQueryService
) -> None:
    phones = [live.watch(number) for number in range(2 * LANE_KEYS)]
    await until(lambda: service.held_keys == 2 * LANE_KEYS)
    service.asked.clear()
    service.put(key(3), row(3))
    await told(phones[3], "1")
    await until(lambda: service.held_keys == 2 * LANE_KEYS)

    assert len(service.asked) == LANE_KEYS


async def test_a_key_without_live_watchers_goes_back_to_its_interval(live: Live, service: FakeQueryService) -> None:
    fast, slow = Recorder(), live.watch(1, interval=0.02)
    subscription = live.hub.subscribe(fast, STAFF, key(1), None, 0.0)
    await until(lambda: service.waiting == 1)
    live.hub.unsubscribe(subscription)
    service.put(key(1), row(1))
    await told(slow, "1")
    await until(lambda: len(live.lanes) == 0)
    service.put(key(1), row(1))
    await told(slow, "2")

    assert service.waiting == 0
    assert "1" not in fast.told


async def test_a_key_that_nobody_watches_any_more_leaves_its_lane(live: Live, service: FakeQueryService) -> None:
    subscription = live.hub.subscribe(Recorder(), STAFF, key(1), None, 0.0)
    await until(lambda: service.waiting == 1)
    live.hub.unsubscribe(subscription)
    service.put(key(1), row(1))
    await until(lambda: len(live.lanes) == 0)

    assert live.hub.unique_keys == 0


async def test_an_outage_ends_with_the_newest_value(live: Live, service: FakeQueryService) -> None:
    phone = live.watch(1)
    await until(lambda: service.waiting == 1)
    service.failing = grpc.StatusCode.UNAVAILABLE
    address = service.address
    await service.stop()
    await until(lambda: len(live.lanes) == 0)
    service.failing = None
    service.put(key(1), row(1))
    await service.start(address)
    await told(phone, "1")
    await until(lambda: service.waiting == 1)

    assert phone.told == ["snapshot", "unknown!", "1"]


async def test_the_more_keys_are_live_the_further_apart_polls_begin(live: Live, service: FakeQueryService) -> None:
    for number in range(20):
        live.watch(number)
    await until(lambda: service.held_keys == 20)

    assert live.lanes.spacing() == 20 / 1e6
