"""Ticks become batches that never pile up, and keys with the interval 0 are held in one long poll per instance."""

import asyncio
import time
from collections.abc import AsyncIterator
from unittest.mock import patch

import grpc
import pytest

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.answers import Recorder
from testkit.ws_edge.edge import FakeQueryService, until
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from ws_edge.metrics import Metrics
from ws_edge.model.authorization import Consumer
from ws_edge.model.questions import Question
from ws_edge.model.states import StoreKey
from ws_edge.upstream.query_client import QueryClient
from ws_edge.watches.audience import WatchOptions
from ws_edge.watches.hub import Hub
from ws_edge.watches.poller import FAILED_REST_S, MAX_REST_S, SLOW_S, Poller, rest

KEYS = 40
"""Of a batch, and of a lane."""
STAFF = Consumer("", "operator", True)


def key(number: int) -> StoreKey:
    return StoreKey("orders-by-key", f"order-{number}")


def question(number: int) -> Question:
    return Question(SHIPPED_STORES["orders-by-key"], f"order-{number}")


class Live:
    """A hub with a poller before a scripted service that holds long polls for half a minute."""

    def __init__(self, service: FakeQueryService) -> None:
        woken = asyncio.Event()
        self.hub = Hub(time.monotonic, 0.005, woken.set)
        self.client = QueryClient([service.address], timeout=30.0, batch_limit=1000, backoff_s=0.0)
        limits = KEYS, 30.0, 1e6
        self.poller = Poller(self.hub, self.client, Metrics(), time.monotonic, woken, *limits)

    def watch(self, number: int, interval: float = 0.0) -> Recorder:
        phone = Recorder()
        self.hub.subscribe(phone, question(number), WatchOptions(STAFF, interval))
        return phone


@pytest.fixture
async def live(service: FakeQueryService) -> AsyncIterator[Live]:
    live = Live(service)
    task = asyncio.create_task(live.poller.run())
    yield live
    task.cancel()
    await asyncio.wait({task})
    await live.client.close()


@pytest.fixture
def hub(live: Live) -> Hub:
    """A hub with a live poller."""
    return live.hub


async def test_a_burst_of_new_subscriptions_is_one_batch(hub: Hub, service: FakeQueryService) -> None:
    phones = [Recorder() for _ in range(KEYS)]
    for number, phone in enumerate(phones):
        hub.subscribe(phone, question(number), WatchOptions(STAFF, 60.0))
    await until(lambda: all(phone.events for phone in phones))

    assert service.calls["BatchGetStates"] == 1
    assert len(service.asked) == KEYS


async def test_a_change_reaches_the_subscriber_with_the_next_tick(hub: Hub, service: FakeQueryService) -> None:
    phone = Recorder()
    hub.subscribe(phone, question(1), WatchOptions(STAFF, 0.02))
    await until(lambda: bool(phone.events))
    service.put(key(1), Order(order_id="order-1"))
    await until(lambda: phone.events[-1] == "1")

    assert phone.events == ["snapshot", "1"]


async def test_while_an_instance_is_slow_it_has_one_batch_and_keys_are_in_the_next_once(
    hub: Hub, service: FakeQueryService
) -> None:
    service.delay = 0.2
    for number in range(10):
        hub.subscribe(Recorder(), question(number), WatchOptions(STAFF, 0.01))
        await asyncio.sleep(0.01)
    await until(lambda: service.asked[key(0)] >= 4)

    assert service.most_at_once == 1
    assert len(service.asked) == 10


async def test_an_instance_has_one_call_at_a_time_however_many_clients_come_back_at_once(
    hub: Hub, service: FakeQueryService
) -> None:
    service.delay = 0.005
    phones = [Recorder() for _ in range(20 * KEYS)]
    for number, phone in enumerate(phones):
        hub.subscribe(phone, question(number), WatchOptions(STAFF, 60.0))
    await until(lambda: all(phone.events for phone in phones))

    assert (service.most_at_once, service.calls["BatchGetStates"]) == (1, 20)
    assert set(service.asked.values()) == {1}


async def called(service: FakeQueryService, times: int) -> None:
    await until(lambda: service.calls["BatchGetStates"] >= times)


async def test_neither_new_keys_nor_timed_ones_starve(hub: Hub, service: FakeQueryService) -> None:
    timed = [Recorder() for _ in range(KEYS)]
    for number, phone in enumerate(timed):
        hub.subscribe(phone, question(number), WatchOptions(STAFF, 0.005))
    await until(lambda: all(phone.events for phone in timed))
    service.delay = 0.005
    rounds, fresh = service.asked[key(0)], list[Recorder]()
    while service.asked[key(0)] < rounds + 3:
        assert len(fresh) < 100 * KEYS
        calls = service.calls["BatchGetStates"]
        for _ in range(2 * KEYS):
            fresh.append(Recorder())
            hub.subscribe(fresh[-1], question(KEYS + len(fresh)), WatchOptions(STAFF, 60.0))
        await called(service, calls + 1)
    await until(lambda: all(phone.events for phone in fresh))

    assert service.most_at_once == 1


async def test_a_batch_that_breaks_is_asked_for_again(live: Live, service: FakeQueryService) -> None:
    phone = Recorder()
    with patch.object(live.client, "poll", side_effect=RuntimeError("a defect")) as broken:
        live.hub.subscribe(phone, question(1), WatchOptions(STAFF, 0.5))
        await until(lambda: broken.call_count > 1)
        assert "snapshot" not in phone.events
    await until(lambda: phone.events == ["snapshot"])

    assert service.asked[key(1)] >= 1


def test_a_lane_rests_as_long_as_a_slow_batch_took_and_longer_after_a_failure() -> None:
    assert rest(SLOW_S, is_answered=True) == 0.0
    assert rest(0.4, is_answered=True) == 0.4
    assert rest(60.0, is_answered=True) == MAX_REST_S
    assert rest(0.0, is_answered=False) == FAILED_REST_S


async def test_a_lane_rests_after_each_batch_depending_on_its_result(hub: Hub, service: FakeQueryService) -> None:
    service.delay = 0.15
    with patch("ws_edge.watches.poller.rest", return_value=0.0) as rests:
        hub.subscribe(Recorder(), question(1), WatchOptions(STAFF, 0.01))
        await until(lambda: rests.call_count >= 2)
        service.failing = grpc.StatusCode.RESOURCE_EXHAUSTED
        await until(lambda: rests.call_args.args[1] is False)
    took, answered = rests.call_args_list[0].args

    assert answered
    assert took >= service.delay


def row(number: int) -> Order:
    return Order(order_id=f"order-{number}")


async def reported(phone: Recorder, word: str) -> None:
    await until(lambda: phone.events[-1:] == [word])


async def test_a_change_ends_the_long_poll_and_the_next_one_follows(live: Live, service: FakeQueryService) -> None:
    phone = live.watch(1)
    for offset in (1, 2, 3):
        await until(lambda: service.waiting == 1)
        service.put(key(1), row(1))
        await reported(phone, str(offset))

    assert phone.events == ["snapshot", "1", "2", "3"]


async def test_keys_that_join_share_one_long_poll(live: Live, service: FakeQueryService) -> None:
    first = live.watch(1)
    await until(lambda: service.waiting == 1)
    others = [live.watch(number) for number in range(2, 12)]
    await until(lambda: service.held_keys == 11)
    service.put(key(7), row(7))
    await reported(others[5], "1")
    service.put(key(1), row(1))
    await reported(first, "2")

    assert service.most_waiting == 1


async def test_while_keys_join_one_by_one_the_long_poll_restarts_only_now_and_then(
    live: Live, service: FakeQueryService
) -> None:
    live.watch(0)
    await until(lambda: service.waiting == 1)
    with patch("ws_edge.watches.poller.SETTLED_S", 3600.0):
        for number in range(1, KEYS):
            await reported(live.watch(number), "snapshot")
        polled = service.most_waiting, service.held_keys
        service.put(key(0), row(0))
        await until(lambda: service.held_keys == KEYS)

    assert polled == (1, 1)
    assert service.most_waiting == 1


async def test_any_number_of_subscribers_of_a_key_cost_one_long_poll(live: Live, service: FakeQueryService) -> None:
    phones = [live.watch(1)]
    await until(lambda: service.waiting == 1)
    calls = service.calls["BatchGetStates"]
    phones += [live.watch(1) for _ in range(500)] + [live.watch(1, interval=0.5) for _ in range(500)]
    service.put(key(1), row(1))
    await until(lambda: all(phone.events == ["snapshot", "1"] for phone in phones))
    await until(lambda: service.waiting == 1)

    assert service.calls["BatchGetStates"] == calls + 1


async def test_more_keys_than_a_lane_holds_are_spread_over_several_lanes(live: Live, service: FakeQueryService) -> None:
    phones = [live.watch(number) for number in range(2 * KEYS)]
    await until(lambda: service.held_keys == 2 * KEYS)
    service.asked.clear()
    service.put(key(3), row(3))
    await reported(phones[3], "1")
    await until(lambda: service.held_keys == 2 * KEYS)

    assert len(service.asked) == KEYS


async def test_a_key_leaves_its_long_poll_when_all_subscribers_have_an_interval(
    live: Live, service: FakeQueryService
) -> None:
    fast, slow = Recorder(), live.watch(1, interval=0.02)
    subscription = live.hub.subscribe(fast, question(1), WatchOptions(STAFF, 0.0))
    await until(lambda: service.waiting == 1)
    live.hub.unsubscribe(subscription)
    service.put(key(1), row(1))
    await reported(slow, "1")
    await until(lambda: live.poller.held_keys == 0)
    service.put(key(1), row(1))
    await reported(slow, "2")

    assert service.waiting == 0
    assert "1" not in fast.events


async def test_a_key_that_nobody_watches_any_more_leaves_its_lane(live: Live, service: FakeQueryService) -> None:
    subscription = live.hub.subscribe(Recorder(), question(1), WatchOptions(STAFF, 0.0))
    await until(lambda: service.waiting == 1)
    live.hub.unsubscribe(subscription)
    service.put(key(1), row(1))
    await until(lambda: live.poller.held_keys == 0)

    assert live.hub.watches == 0


async def test_keys_that_come_and_go_leave_their_lane_although_no_poll_ends_by_itself(
    live: Live, service: FakeQueryService
) -> None:
    """As revocations of consumers with short-lived sockets do: each that joins begins the poll anew."""
    live.watch(0)
    for number in range(1, KEYS):
        subscription = live.hub.subscribe(Recorder(), question(number), WatchOptions(STAFF, 0.0))
        await until(lambda: service.held_keys > 1)
        live.hub.unsubscribe(subscription)
    live.watch(KEYS)
    await until(lambda: service.asked[key(KEYS)] > 1)

    assert service.held_keys == live.poller.held_keys == 2


async def test_an_outage_ends_with_the_newest_value(live: Live, service: FakeQueryService) -> None:
    phone = live.watch(1)
    await until(lambda: service.waiting == 1)
    service.failing = grpc.StatusCode.UNAVAILABLE
    address = service.address
    await service.stop()
    await until(lambda: live.poller.held_keys == 0)
    service.failing = None
    service.put(key(1), row(1))
    await service.start(address)
    await reported(phone, "1")
    await until(lambda: service.waiting == 1)

    assert phone.events == ["snapshot", "1"]


async def test_long_polls_of_many_keys_begin_further_apart(live: Live, service: FakeQueryService) -> None:
    for number in range(20):
        live.watch(number)
    await until(lambda: service.held_keys == 20)

    assert live.poller.spacing() == 20 / 1e6
