"""Orders are watched in the form of document 000, resume by the token of their last frame, and can be repeated."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.push.v2.push_pb2 import Blind, Ended, Ping, ServerFrame, Watching
from testkit.ws_edge.answers import ALICE
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from testkit.ws_edge.one_socket import message_of
from ws_edge.codec.frames import PlaceFrame
from ws_edge.errors import UnknownStoreError
from ws_edge.model.states import StoreKey
from ws_edge.model.stores import find
from ws_edge.order_updates import OrderUpdates

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
        await until(lambda: edge.parts.hub.watches == 0)

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


async def test_the_end_of_a_watch_is_answered_also_when_there_is_none(edge: RunningEdge) -> None:
    async with edge.socket() as socket:
        frame = await say(socket, type="order_updates_cancel", order_id=ORDER.group)

    assert (frame["type"], frame["data"]["order_id"]) == ("order_updates_cancelled", ORDER.group)


async def test_an_order_that_is_to_be_repeated_comes_again_also_after_a_token(edge: RunningEdge) -> None:
    put(edge, OrderStatus.ORDER_STATUS_PAID)
    async with edge.socket() as socket:
        frames = [await say(socket, **ASK | {"interval_ms": 20, "repeat": True})]
        frames += [await heard(socket) for _ in "12"]
    async with edge.socket(
        f"/update/orders/{ORDER.group}?repeat=true&interval_ms=20&token={frames[0]['token']}"
    ) as again:
        frames += [await heard(again) for _ in "12"]

    assert all(frame == frames[0] for frame in frames)


class Sent:
    """Collects the frames that a codec sends by itself."""

    def __init__(self) -> None:
        self.frames: list[bytes | None] = []
        self.is_idle = True

    def put(self, frame: bytes | None) -> None:
        self.frames.append(frame)


def repeating(sent: Sent) -> OrderUpdates:
    """Returns the codec of a socket with one order, watch 1, which was sent and is repeated every millisecond."""
    orders = OrderUpdates()
    orders.attach(sent)
    orders.path_request(ORDER.group, b"repeat=true", partial(find, SHIPPED_STORES, ALICE))
    orders.place_frames(PlaceFrame(1, (), Watching(interval_ms=1), (b'{"type":"order_status_update"}',), "t"))
    return orders


def see(orders: OrderUpdates, *blind: int) -> None:
    """Tells the codec which watches the edge does not see."""
    frame = orders.socket_frame(ServerFrame(ping=Ping(blind=[Blind(ids=blind, lag_s=4)] if blind else [])))
    assert frame is None


@pytest.mark.parametrize("reason", ["blind", "busy"])
async def test_nothing_is_repeated_while_the_edge_does_not_see_or_the_client_does_not_read(reason: str) -> None:
    orders = repeating(sent := Sent())
    await until(lambda: len(sent.frames) > 1)
    if reason == "blind":
        see(orders, 1)
    sent.is_idle = reason == "blind"
    before = len(sent.frames)
    await asyncio.sleep(0.02)
    during = len(sent.frames)
    see(orders)
    sent.is_idle = True
    await until(lambda: len(sent.frames) > during)
    orders.detach()

    assert during == before


async def test_a_watch_that_has_ended_or_shows_an_error_is_not_repeated() -> None:
    orders = repeating(sent := Sent())
    orders.place_frames(PlaceFrame(1, (), None, (b'{"type":"error","error":{}}',), "u"))
    await asyncio.sleep(0.02)
    orders.place_frames(PlaceFrame(1, (), None, (b'{"type":"order_status_update"}',), "v"))
    [ended] = orders.place_frames(PlaceFrame(1, ended=Ended()))
    await asyncio.sleep(0.02)

    assert sent.frames == []
    assert json.loads(message_of(ended))["type"] == "order_updates_cancelled"


async def test_how_many_versions_were_left_out_is_told_once() -> None:
    orders = repeating(sent := Sent())
    orders.place_frames(PlaceFrame(1, (), None, (b'{"type":"order_status_update","skipped":"2"}',), "u"))
    await until(lambda: len(sent.frames) > 1)
    orders.detach()

    assert [json.loads(message_of(frame)) for frame in sent.frames[:1] if frame] == [
        {"type": "order_status_update", "token": "u"}
    ]


def test_an_order_of_no_store_leaves_nothing_behind() -> None:
    orders = OrderUpdates()
    for _ in "12":
        with pytest.raises(UnknownStoreError):
            orders.read({"text": json.dumps(ASK)}, partial(find, {"others": SHIPPED_STORES["odds-by-match"]}, ALICE))
    request = orders.read({"text": json.dumps(ASK)}, partial(find, SHIPPED_STORES, ALICE))

    assert request.unwatch == []
    assert [watch.id for watch in request.watches] == [1]
