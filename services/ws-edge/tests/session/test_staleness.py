"""Frames and answers say for how long they may have been out of date, once that is long."""

import asyncio
import json
from typing import Any

import grpc
import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

ME = "customer-0001"
KEY = StoreKey("orders-by-key", "12345")
MEMBER = StoreKey("orders-by-customer", ME, "1", "12345")
ROW = Order(order_id="12345", customer_id=ME)
HOUR = 3_600_000


@pytest.fixture
async def lagging(edge: RunningEdge) -> RunningEdge:
    """An edge before an instance that is an hour behind."""
    edge.query.put(KEY, ROW)
    edge.query.put(MEMBER, ROW)
    edge.query.lag_ms = HOUR
    return edge


async def frames(socket: ClientConnection, number: int, **request: Any) -> list[dict[str, Any]]:
    """The events of the next frames, after a request."""
    await socket.send(json.dumps(request))
    return [next(iter(json.loads(await socket.recv()).values())) for _ in range(number)]


async def test_frames_of_keys_and_ranges_say_how_stale_they_are(lagging: RunningEdge) -> None:
    async with lagging.socket("/v1/stream") as socket, lagging.socket() as orders:
        key = await frames(socket, 2, subscribe={"store": KEY.store, "key": {"group": "12345"}})
        members = await frames(socket, 2, watch_range={"range": {"store": MEMBER.store, "group": ME}})
        await orders.send(json.dumps({"type": "order_updates_request", "order_id": "12345"}))
        order = json.loads(await orders.recv())

    assert [each["lag_ms"] for each in (*key, *members, order)] == [str(HOUR)] * 5


async def test_calls_say_how_stale_they_are_and_no_copy_is_confirmed(lagging: RunningEdge, alice: AsyncClient) -> None:
    state = await alice.get("/v1/stores/orders-by-key/12345")
    again = await alice.get("/v1/stores/orders-by-key/12345", headers={"If-None-Match": state.headers["ETag"]})
    order = await alice.get("/update/orders/12345")
    page = await alice.get(f"/v1/stores/orders-by-customer/groups/{ME}")
    lagging.query.lag_ms = 0
    current = await alice.get("/v1/stores/orders-by-key/12345", headers={"If-None-Match": state.headers["ETag"]})

    assert [each.json()["lag_ms"] for each in (state, again, order, page)] == [str(HOUR)] * 4
    assert current.status_code == 304


async def test_a_row_that_stays_is_no_longer_stale_once_a_current_replica_has_confirmed_it(
    lagging: RunningEdge,
) -> None:
    subscribe = {"store": KEY.store, "key": {"group": "12345"}, "interval_ms": 20}
    async with lagging.socket("/v1/stream") as observer, lagging.socket("/v1/stream") as socket:
        replies = await frames(observer, 2, subscribe=subscribe)
        lagging.query.lag_ms = 10
        later = replies
        while any("lag_ms" in each for each in later):
            later = await frames(socket, 2, subscribe=subscribe)

    assert [each["lag_ms"] for each in replies] == [str(HOUR)] * 2
    assert later[1]["position"] == replies[1]["position"]


async def test_an_outage_of_the_query_service_is_told_to_a_running_watch_by_its_id() -> None:
    async with RunningEdge(min_interval_ms=20, default_interval_ms=20, tick_ms=5, unavailable_after_ms=100) as edge:
        edge.query.put(KEY, ROW)
        async with edge.socket("/v1/stream") as socket, asyncio.timeout(30):
            await socket.send(json.dumps({"id": "7", "subscribe": {"store": KEY.store, "key": {"group": "12345"}}}))
            frames = [json.loads(await socket.recv()) for _ in range(2)]
            edge.query.failing = grpc.StatusCode.UNAVAILABLE
            outage = json.loads(await socket.recv())
            edge.query.failing = None
            edge.query.put(KEY, Order(order_id="12345", customer_id=ME, tracking_number="1"))
            later = json.loads(await socket.recv())

    assert ["subscribed" in frames[0], "changed" in frames[1]] == [True, True]
    assert (outage["id"], outage["error"]["code"]) == ("7", "unavailable")
    assert later["changed"]["row"]["tracking_number"] == "1"
