"""A socket ends well whether its client reads or not."""

import asyncio
import gc
import json
import socket as sockets
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from uvicorn.protocols.utils import ClientDisconnected
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.server import ServerProtocol

from statecast.orders.v1.order_pb2 import Order
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.one_socket import OneSocket, settle
from ws_edge.codec.frames import BINARY, FRAMES, wire
from ws_edge.model.states import StoreKey
from ws_edge.session.protocol import EdgeHttpProtocol, EdgeSocketProtocol

KEY = StoreKey("orders-by-key", "12345")


async def test_a_frame_that_is_too_large_closes_with_its_code_however_large(edge: RunningEdge) -> None:
    for size in (70_000, 5_000_000):
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
        for event in (
            {"type": "websocket.send", FRAMES: [wire(b"late")]},
            {"type": "websocket.close", "code": 1012},
        ):
            with pytest.raises(ClientDisconnected):
                await protocol.send(event)


async def test_any_number_of_frames_of_any_length_leave_in_one_write(edge: RunningEdge) -> None:
    texts = ["", "Grüße", *("x" * size for size in (125, 126, 65_535, 65_536))]
    async with edge.socket() as socket:
        (protocol,) = edge.parts.server.server_state.connections
        assert isinstance(protocol, EdgeSocketProtocol)
        frames = [*(wire(text.encode()) for text in texts), wire(b"x" * 65_536, BINARY)]
        await protocol.send({"type": "websocket.send", FRAMES: frames})

        assert [await socket.recv() for _ in frames] == [*texts, b"x" * 65_536]


UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
HANDSHAKE = f"GET /v1/tickets/stream HTTP/1.1\r\nHost: edge\r\n{UPGRADE}Sec-WebSocket-Key: {'A' * 22}==\r\n"


async def answer_to(edge: RunningEdge, request: str) -> bytes:
    """Sends these bytes and no more; returns all that comes until the edge closes the connection."""
    host, port = edge.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.encode("latin-1"))
    answer = b""
    async with asyncio.timeout(30):
        with suppress(ConnectionResetError):
            while received := await reader.read(65_536):
                answer += received
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("".join(f"X-{number}: 1\r\n" for number in range(129)), 431),
        (f"X-Long: {'x' * 9000}\r\n", 403),
        ("Content-Length: 4\r\n", 400),
        ("Transfer-Encoding: chunked\r\n", 400),
        ("Sec-WebSocket-Version: 8\r\n", 400),
        (f"Sec-WebSocket-Key: {'A' * 20}==\r\n", 400),
        ("Sec-WebSocket-Key: é\r\n", 400),
    ],
)
async def test_a_handshake_that_opens_no_socket_is_answered_and_closed(
    edge: RunningEdge, more: str, status: int
) -> None:
    answer = await answer_to(edge, f"{HANDSHAKE}{more}\r\n")

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    await until(lambda: not edge.parts.server.server_state.connections)


async def test_no_other_request_opens_a_socket(edge: RunningEdge) -> None:
    for old, new in (("GET", "POST"), ("HTTP/1.1", "HTTP/1.0"), ("/v1", "/é")):
        answer = await answer_to(edge, HANDSHAKE.replace(old, new) + "\r\n")

        assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_refused_handshake_is_no_error_in_the_logs(edge: RunningEdge, caplog: pytest.LogCaptureFixture) -> None:
    answer = await answer_to(edge, f"{HANDSHAKE}\r\n")

    assert answer.startswith(b"HTTP/1.1 403 ")
    await until(lambda: not edge.parts.server.server_state.tasks)
    assert not [record.message for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("", b""),
        ("\r\n", b""),
        (HANDSHAKE, b""),
        ("GET /healthz HT", b""),
        ("POST /v1/tickets HTTP/1.1\r\nHost: edge\r\nContent-Length: 4\r\n\r\n{", b"HTTP/1.1 403 "),
        ("GET /healthz HTTP/1.1\r\nHost: edge\r\n\r\nGET /heal", b"HTTP/1.1 200 "),
    ],
)
async def test_a_client_that_does_not_finish_its_request_is_cut_off(
    edge: RunningEdge, monkeypatch: pytest.MonkeyPatch, sent: str, answered: bytes
) -> None:
    monkeypatch.setattr("ws_edge.session.protocol.REQUEST_TIMEOUT_S", 0.2)
    answer = await answer_to(edge, sent)

    assert answer.startswith(answered)
    assert bool(answer) == bool(answered)
    await until(lambda: not edge.parts.server.server_state.connections)


async def test_the_time_of_a_request_does_not_end_what_comes_after_it(
    edge: RunningEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ws_edge.session.protocol.REQUEST_TIMEOUT_S", 0.2)
    async with edge.socket() as socket:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(socket.recv(), 0.5)
        await (await socket.ping())


async def connect_and_never_read(edge: RunningEdge) -> sockets.socket:
    """Returns a client that takes its handshake, watches the order, and then reads nothing any more."""
    host, port = edge.address.split(":")
    client = sockets.socket()
    client.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (host, int(port)))
    headers = "".join(f"{name}: {value}\r\n" for name, value in edge.headers().items())
    request = f"GET /update/orders/12345 HTTP/1.1\r\nHost: edge\r\n{UPGRADE}Sec-WebSocket-Key: {'A' * 22}==\r\n"
    await loop.sock_sendall(client, f"{request}{headers}\r\n".encode())
    assert (await loop.sock_recv(client, 12)).startswith(b"HTTP/1.1 101")
    return client


def put_big(edge: RunningEdge, number: int) -> Order:
    """Writes a version of the order that fills buffers."""
    big = Order(order_id="12345", customer_id="customer-0001", tracking_number=f"{number} " + "x" * 100_000)
    edge.query.put(KEY, big)
    return big


async def test_a_client_that_does_not_read_is_cut_off_and_others_go_on() -> None:
    async with RunningEdge(stall_timeout_s=3) as edge:
        stalled = await connect_and_never_read(edge)
        async with edge.socket("/update/orders/12345") as reading:
            await until(lambda: len(edge.parts.sockets) == 2)
            for number in count():
                if len(edge.parts.sockets) == 1:
                    break
                big = put_big(edge, number)
                while json.loads(await reading.recv())["data"]["tracking_number"] != big.tracking_number:
                    continue
            await until(lambda: edge.parts.hub.subscriptions == 1)

        connections = edge.parts.server.server_state.connections
        await until(lambda: len(connections) == 0)
        stalled.close()


async def test_a_client_that_reads_a_large_frame_slowly_is_alive() -> None:
    async with RunningEdge(send_buffer_bytes=4096) as edge:
        slow = await connect_and_never_read(edge)
        put_big(edge, 0)
        (protocol,) = edge.parts.server.server_state.connections
        assert isinstance(protocol, EdgeSocketProtocol)
        await until(lambda: not protocol.writable.is_set() and not protocol.has_read())
        async with asyncio.timeout(scaled(30)):
            while not protocol.has_read():
                await asyncio.get_running_loop().sock_recv(slow, 1024)
        protocol.keepalive_timeout()

        assert not protocol.writable.is_set()  # most of the frame still waits
        assert not protocol.close_sent
    slow.close()


async def test_a_client_is_stalled_when_it_has_not_read_for_some_time() -> None:
    async with OneSocket() as socket:
        socket.reads.clear()
        socket.session.writer.put(wire(b"{}"))
        await settle()
        seen = []
        for has_read in (False, True, False, False):
            socket.has_read = has_read
            socket.clock.now += 1
            seen.append(socket.session.is_stalled(socket.clock.now, 1.5))
        socket.reads.set()

    assert seen == [False, False, False, True]


async def test_a_stalled_client_does_not_keep_the_edge_from_ending() -> None:
    async with RunningEdge() as edge:
        stalled = await connect_and_never_read(edge)
        await until(lambda: len(edge.parts.sockets) == 1)
        (session,) = edge.parts.sockets._open
        for number in count():
            if not session.writer.is_idle:
                break
            put_big(edge, number)
            await asyncio.sleep(0.01)

    assert edge.parts.server.server_state.connections == set()
    stalled.close()


async def test_a_client_that_stops_reading_delays_the_close_of_no_other() -> None:
    """Its last frame fills the buffer, and no other waits: so its close frame is the one that would wait for it."""
    limits: dict[str, Any] = {"max_sent_frame_bytes": 4_000_000, "sockets_per_s": 20.0}
    async with RunningEdge(**limits) as edge:
        stalled = [await connect_and_never_read(edge) for _ in "123"]
        async with edge.socket("/update/orders/1") as reading:
            await until(lambda: edge.parts.metrics.frames.sent == 4)
            drain = asyncio.create_task(edge.parts.sockets.drain(1.0, 0.2))
            await until(lambda: edge.parts.metrics.frames.sent == 8)
            edge.query.put(KEY, Order(order_id="12345", customer_id="customer-0001", tracking_number="x" * 3_000_000))
            await until(lambda: edge.parts.metrics.frames.sent == 11)
            async with asyncio.timeout(scaled(5)):
                await drain
                await reading.wait_closed()

        assert reading.close_code == 1012
    for client in stalled:
        client.close()


PROTOCOLS = (EdgeHttpProtocol, EdgeSocketProtocol, ServerProtocol)


def protocols() -> Counter[str]:
    """Returns the number of protocols of connections in memory, by type."""
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in PROTOCOLS)


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Disables the garbage collector: only reference counts free objects during the test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def lives_of_sockets(edge: RunningEdge) -> None:
    """Opens sockets that end in each way there is."""
    async with edge.socket():
        assert protocols()["ServerProtocol"] == 1
    async with edge.socket() as socket:
        socket.transport.abort()
    async with edge.socket() as socket:
        await socket.send("x" * 70_000)
        await socket.wait_closed()
    with suppress(InvalidStatus):
        async with edge.socket("/unknown"):
            pass
    await answer_to(edge, HANDSHAKE + "Content-Length: 4\r\n\r\n")


@pytest.mark.usefixtures("_no_collector")
async def test_a_closed_connection_is_freed_without_the_cycle_collector(edge: RunningEdge) -> None:
    """The collector runs seldom: objects that wait for it are memory that grows with the connections of an hour."""
    await lives_of_sockets(edge)

    await until(lambda: not protocols())


async def test_a_close_that_is_not_read_counts_as_such_also_when_frames_waited() -> None:
    async with OneSocket() as socket:
        writer = socket.session.writer
        socket.reads.clear()
        writer.put(wire(b"{}"))
        socket.session.end(4403, "revoked")
        await settle()
        unread_since = writer.writing_since
        socket.reads.set()

    assert unread_since == socket.clock.now
