"""Orders are watched in the form of document 000, and resume by the token of their last frame, at a real edge."""

import json
from typing import Any

import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

ORDER = StoreKey("orders-by-key", "12345")
ASK = {"type": "order_updates_request", "order_id": ORDER.group, "interval_ms": 0}


def put(edge: RunningEdge, status: "OrderStatus.ValueType") -> None:
    edge.query.put(ORDER, Order(order_id=ORDER.group, customer_id="customer-0001", status=status))


async def say(socket: ClientConnection, **frame: Any) -> dict[str, Any]:
    """Sends a frame, and returns the next one."""
    await socket.send(json.dumps(frame))
    return await heard(socket)


async def heard(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def test_an_order_is_shown_and_each_change_and_its_end(edge: RunningEdge) -> None:
    put(edge, OrderStatus.ORDER_STATUS_PAID)
    async with edge.socket() as socket:
        request = {"type": "order_status_updates_request", "data": {"order_id": ORDER.group}}
        frames = [await say(socket, **request)]
        put(edge, OrderStatus.ORDER_STATUS_SHIPPED)
        frames.append(await heard(socket))
        edge.query.delete(ORDER)
        frames.append(await heard(socket))
        cancelled = await say(socket, type="order_updates_cancel", order_id=ORDER.group)

    assert [frame["data"]["status"] for frame in frames] == ["Paid", "Shipped", "Deleted"]
    assert len({frame["token"] for frame in frames}) == 3
    assert (cancelled["type"], cancelled["data"]["order_id"]) == ("order_updates_cancelled", ORDER.group)


@pytest.mark.parametrize("by_path", [False, True])
async def test_only_what_is_newer_than_the_token_is_told(edge: RunningEdge, by_path: bool) -> None:
    put(edge, OrderStatus.ORDER_STATUS_PAID)
    async with edge.socket() as socket:
        token = (await say(socket, **ASK))["token"]
    path = f"/update/orders/{ORDER.group}?interval_ms=0&token={token}" if by_path else "/update/orders"
    async with edge.socket(path) as socket:
        if not by_path:
            await socket.send(json.dumps(ASK | {"token": token}))
        await socket.send(json.dumps({"type": "order_updates_request", "order_id": "another"}))
        first = await heard(socket)
        put(edge, OrderStatus.ORDER_STATUS_SHIPPED)
        second = await heard(socket)

    assert (first["data"]["order_id"], first["data"]["status"]) == ("another", "Unknown")
    assert second["data"]["status"] == "Shipped"


async def test_a_watch_goes_on_from_the_token_of_a_call(edge: RunningEdge, alice: AsyncClient) -> None:
    put(edge, OrderStatus.ORDER_STATUS_PAID)
    token = (await alice.get(f"/update/orders/{ORDER.group}")).json()["token"]
    put(edge, OrderStatus.ORDER_STATUS_SHIPPED)
    async with edge.socket(f"/update/orders/{ORDER.group}?token={token}") as socket:
        frame = await heard(socket)

    assert frame["data"]["status"] == "Shipped"


async def test_an_unknown_order_appears(edge: RunningEdge) -> None:
    async with edge.socket() as socket:
        first = await say(socket, **ASK)
        put(edge, OrderStatus.ORDER_STATUS_PLACED)
        second = await heard(socket)

    assert [frame["data"]["status"] for frame in (first, second)] == ["Unknown", "Placed"]
