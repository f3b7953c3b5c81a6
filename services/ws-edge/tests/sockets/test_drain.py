"""An edge that ends tells its clients when to go, and closes their sockets then."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from statecast.orders.v1.order_pb2 import Order
from ws_edge.states import StoreKey
from ws_edge.testing.edge import RunningEdge, until

KEY = StoreKey("orders-by-key", "12345")


async def told(socket: ClientConnection) -> Any:
    async with asyncio.timeout(30):
        return json.loads(await socket.recv())


async def test_a_drain_tells_all_sockets_when_and_closes_them_then_and_lets_nobody_in() -> None:
    async with RunningEdge(drain_window_ms=50) as edge:
        sockets = [await edge.socket() for _ in range(3)]
        drain = asyncio.create_task(edge.parts.sockets.drain(0.05, 0.06))
        hints = [await told(socket) for socket in sockets]
        for socket in sockets:
            with pytest.raises(ConnectionClosed) as closing:
                await socket.recv()
            assert closing.value.rcvd is not None
            assert closing.value.rcvd.code == 1012
        await drain
        with pytest.raises(InvalidStatus) as refusal:
            await edge.socket()

    assert hints == [{"type": "reconnect", "delay_ms": delay_ms} for delay_ms in (50, 70, 90)]
    assert refusal.value.response.status_code == 503


async def test_the_stream_is_told_of_a_drain_and_goes_on_until_it_is_closed(edge: RunningEdge) -> None:
    edge.query.put(KEY, Order(order_id=KEY.group, customer_id="customer-0001"))
    async with edge.socket("/v1/stream") as socket:
        await until(lambda: len(edge.parts.sockets) == 1)
        drain = asyncio.create_task(edge.parts.sockets.drain(3600, 0))
        hint = await told(socket)
        await socket.send(json.dumps({"subscribe": {"store": KEY.store, "key": {"group": KEY.group}}}))
        frames = [await told(socket), await told(socket)]
        drain.cancel()

    assert hint == {"reconnect": {"delay_ms": 3_600_000}}
    assert [next(iter(frame)) for frame in frames] == ["subscribed", "changed"]
