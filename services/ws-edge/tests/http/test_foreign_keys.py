"""Another customer's rows are refused on every way in, whether they exist or not, with or without a position."""

import json
from typing import Any

import pytest
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order
from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from testkit.ws_edge.edge import RunningEdge
from ws_edge.codec.stream_codec import BINARY_SUBPROTOCOL
from ws_edge.model.states import StoreKey

ORDER = StoreKey("orders-by-key", "12345")
MEMBER = StoreKey("orders-by-customer", "customer-0002", "2024-08-28T12:34:56.123456Z", ORDER.group)
POSITION = {"epoch": "7", "offset": "1"}
"""The position of the order: a caller that sends it must not learn that there is nothing newer."""


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """An edge with all ways in (sockets, calls and channels), and with an order of customer-0002."""
    for key in (ORDER, MEMBER):
        keeping_edge.query.put(key, Order(order_id=ORDER.group, customer_id="customer-0002"))
    return keeping_edge


def key_of(key: StoreKey) -> dict[str, str]:
    return {"group": key.group} | ({"sort": key.sort, "member": key.member} if key.member else {})


@pytest.mark.parametrize(
    "request_of_order",
    [
        {"type": "order_updates_request", "order_id": ORDER.group},
        {"type": "order_updates_request", "order_id": ORDER.group, "position": POSITION},
        {"type": "order_updates_request", "order_id": ORDER.group, "interval_ms": 0},
        {"type": "order_status_updates_request", "data": {"order_id": ORDER.group}},
    ],
)
async def test_by_a_frame_of_the_orders_socket(edge: RunningEdge, request_of_order: dict[str, Any]) -> None:
    async with edge.socket() as socket:
        await socket.send(json.dumps(request_of_order))
        frame = json.loads(await socket.recv())

    assert (frame["type"], frame["error"]["code"]) == ("error", "forbidden")


@pytest.mark.parametrize("query", ["", "?position_epoch=7&position_offset=1"])
async def test_by_the_path_of_an_order(edge: RunningEdge, query: str) -> None:
    async with edge.socket(f"/update/orders/{ORDER.group}{query}") as socket:
        frame = json.loads(await socket.recv())

    assert (frame["type"], frame["error"]["code"]) == ("error", "forbidden")


@pytest.mark.parametrize("key", [ORDER, MEMBER])
@pytest.mark.parametrize("more", [{}, {"after": POSITION}])
async def test_by_a_frame_of_the_stream(edge: RunningEdge, key: StoreKey, more: dict[str, Any]) -> None:
    async with edge.socket("/v1/stream") as socket:
        await socket.send(json.dumps({"id": "a", "subscribe": {"store": key.store, "key": key_of(key), **more}}))
        frame = json.loads(await socket.recv())

    assert (frame["id"], frame["error"]["code"]) == ("a", "forbidden")


@pytest.mark.parametrize("more", [{}, {"after": POSITION}])
async def test_by_a_range_of_the_stream(edge: RunningEdge, more: dict[str, Any]) -> None:
    foreign = {"store": MEMBER.store, "group": MEMBER.group}
    async with edge.socket("/v1/stream") as socket:
        await socket.send(json.dumps({"id": "a", "watch_range": {"range": foreign, **more}}))
        frame = json.loads(await socket.recv())

    assert (frame["id"], frame["error"]["code"]) == ("a", "forbidden")


async def test_by_a_binary_frame(edge: RunningEdge) -> None:
    request = ClientFrame(id="a")
    request.subscribe.store, request.subscribe.key.group = ORDER.store, ORDER.group
    async with edge.socket("/v1/stream", subprotocols=[BINARY_SUBPROTOCOL]) as socket:
        await socket.send(request.SerializeToString())
        frame = ServerFrame.FromString(await socket.recv(decode=False))

    assert (frame.id, frame.error.code) == ("a", "forbidden")


async def test_by_a_browsers_socket_with_a_ticket(edge: RunningEdge, alice: AsyncClient) -> None:
    ticket = (await alice.post("/v1/tickets")).json()["ticket"]
    async with edge.stranger_socket("/v1/tickets/stream", [f"statecast.ticket.{ticket}"]) as socket:
        await socket.send(json.dumps({"id": "a", "subscribe": {"store": ORDER.store, "key": key_of(ORDER)}}))
        frame = json.loads(await socket.recv())

    assert (frame["id"], frame["error"]["code"]) == ("a", "forbidden")


async def test_by_an_own_channel(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = (await alice.post("/v1/channels")).json()["channel"]
    subscriptions = [{"store": ORDER.store, "key": key_of(ORDER)}]
    await alice.post(f"/v1/channels/{channel}/subscriptions", json={"subscriptions": subscriptions})
    async with edge.socket(f"/v1/channels/{channel}/stream") as socket:
        await socket.recv()
        await socket.send(json.dumps({"id": "b", "begin": {}}))
        frame = json.loads(await socket.recv())

    assert frame["error"]["code"] == "forbidden"


async def test_by_a_range_in_an_own_channel(edge: RunningEdge, alice: AsyncClient) -> None:
    channel = (await alice.post("/v1/channels")).json()["channel"]
    subscriptions = [{"range": {"store": MEMBER.store, "group": MEMBER.group}}]
    answer = await alice.post(f"/v1/channels/{channel}/subscriptions", json={"subscriptions": subscriptions})

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("headers", [{}, {"If-None-Match": '"7-1"'}, {"If-None-Match": "*"}])
@pytest.mark.parametrize(
    "path",
    [
        f"/v1/stores/{MEMBER.store}/groups/{MEMBER.group}",
        f"/v1/stores/orders-by-item/groups/{ORDER.group}",
        "/v1/shards",
    ],
)
async def test_by_a_call(edge: RunningEdge, alice: AsyncClient, path: str, headers: dict[str, str]) -> None:
    answer = await alice.get(path, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert "ETag" not in answer.headers


async def test_a_refusal_leaves_no_watch_behind(edge: RunningEdge) -> None:
    async with edge.socket("/v1/stream") as socket:
        before = edge.parts.hub.unique_keys
        for key in (ORDER, MEMBER):
            await socket.send(json.dumps({"subscribe": {"store": key.store, "key": key_of(key)}}))
            await socket.recv()

        assert edge.parts.hub.unique_keys == before
