"""A socket ends well whether its client reads or not."""

import asyncio
import json
import socket as sockets

import pytest
from uvicorn.protocols.utils import ClientDisconnected
from websockets.exceptions import ConnectionClosed

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge, until
from ws_edge.session.protocol import WIRE, EdgeSocketProtocol
from ws_edge.states import StoreKey

KEY = StoreKey("orders-by-key", "12345")


async def test_a_frame_that_is_too_large_closes_with_its_code_however_large(edge: RunningEdge) -> None:
    for size in (20_000, 5_000_000):
        async with edge.socket() as socket:
            sending = asyncio.create_task(socket.send("x" * size))
            with pytest.raises(ConnectionClosed) as closing:
                await socket.recv()
            await asyncio.wait({sending})

        assert closing.value.rcvd is not None
        assert closing.value.rcvd.code == 1009
    await until(lambda: len(edge.parts.sockets) == 0)


async def test_sending_after_the_close_raises_that_the_client_is_gone(edge: RunningEdge) -> None:
    async with edge.socket():
        (protocol,) = edge.parts.server.server_state.connections
        assert isinstance(protocol, EdgeSocketProtocol)
        await protocol.send({"type": "websocket.close", "code": 1012})
        for event in ({"type": "websocket.send", "text": "late"}, {"type": "websocket.close", "code": 1012}):
            with pytest.raises(ClientDisconnected):
                await protocol.send(event)


async def test_an_event_for_many_sockets_is_framed_once(edge: RunningEdge) -> None:
    event, framed = {"type": "websocket.send", "text": "Grüße"}, []
    async with edge.socket() as one, edge.socket() as two:
        for protocol in edge.parts.server.server_state.connections:
            assert isinstance(protocol, EdgeSocketProtocol)
            await protocol.send(event)
            framed.append(event[WIRE])
        assert framed[0] is framed[1]
        assert [await one.recv(), await two.recv()] == ["Grüße", "Grüße"]


async def connect_and_never_read(edge: RunningEdge) -> sockets.socket:
    """A client that takes its handshake, watches the order, and then reads nothing any more."""
    host, port = edge.address.split(":")
    client = sockets.socket()
    client.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (host, int(port)))
    headers = "".join(f"{name}: {value}\r\n" for name, value in edge.headers().items())
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    request = f"GET /update/orders/12345 HTTP/1.1\r\nHost: edge\r\n{upgrade}Sec-WebSocket-Key: {'A' * 22}==\r\n"
    await loop.sock_sendall(client, f"{request}{headers}\r\n".encode())
    assert (await loop.sock_recv(client, 12)).startswith(b"HTTP/1.1 101")
    return client


async def test_a_client_that_does_not_read_is_cut_off_and_others_go_on() -> None:
    async with RunningEdge(min_interval_ms=10, default_interval_ms=10, tick_ms=5, stall_timeout_s=3) as edge:
        stalled = await connect_and_never_read(edge)
        offset = 0
        async with edge.socket("/update/orders/12345") as reading:
            while len(edge.parts.sockets) == 2 or not edge.parts.metrics.frames.skipped:
                big = Order(order_id="12345", customer_id="customer-0001", tracking_number="x" * 100_000)
                offset = edge.query.put(KEY, big)
                while int(json.loads(await reading.recv())["position"]["offset"]) < offset:
                    continue
            await until(lambda: edge.parts.hub.subscriptions == 1)

        assert edge.parts.metrics.frames.skipped > 0
        connections = edge.parts.server.server_state.connections
        await until(lambda: len(connections) == 0)
        stalled.close()


async def test_a_stalled_client_does_not_keep_the_edge_from_ending() -> None:
    async with RunningEdge(min_interval_ms=10, default_interval_ms=10, tick_ms=5) as edge:
        stalled = await connect_and_never_read(edge)
        while not edge.parts.metrics.frames.skipped:
            edge.query.put(KEY, Order(order_id="12345", customer_id="customer-0001", tracking_number="x" * 100_000))
            await asyncio.sleep(0.01)

    assert edge.parts.server.server_state.connections == set()
    stalled.close()
