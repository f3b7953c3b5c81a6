"""Every frame that a client sends, of any kind, is counted and bounded, and delays nobody else."""

import asyncio
import json
import socket as sockets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from testkit.ports import free_port
from testkit.service_process import ServiceProcess
from testkit.waiting import scaled, wait_until_async
from testkit.ws_edge.edge import SECRET, FakeQueryService, RunningEdge, gateway_headers, until

UPGRADE = (
    f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\n"
)
FLOODS = {
    "empty pings": Frame(Opcode.PING, b""),
    "pings": Frame(Opcode.PING, b"x" * 125),
    "pongs": Frame(Opcode.PONG, b""),
    "empty messages": Frame(Opcode.TEXT, b""),
    "empty fragments": Frame(Opcode.CONT, b"", fin=False),
}


class RawClient:
    """A client of raw bytes."""

    def __init__(self, address: str, consumer: str) -> None:
        self.address, self.consumer = address, consumer

    async def __aenter__(self) -> "RawClient":
        host, port = self.address.split(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))
        headers = "".join(f"{name}: {value}\r\n" for name, value in gateway_headers(SECRET, self.consumer, "x").items())
        self.writer.write(f"GET /v1/stream HTTP/1.1\r\nHost: edge\r\n{UPGRADE}{headers}\r\n".encode())
        assert (await self.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def rest(self) -> bytes:
        """Reads until the edge closes the connection."""
        received = b""
        async with asyncio.timeout(scaled(30)):
            while True:
                try:
                    part = await self.reader.read(65_536)
                except ConnectionError:
                    return received
                if not part:
                    return received
                received += part


def encoded(kind: str, count: int) -> bytes:
    """Returns so many frames of a kind; fragments follow the first one of their message."""
    first = Frame(Opcode.TEXT, b"", fin=False).serialize(mask=True) if kind == "empty fragments" else b""
    return first + FLOODS[kind].serialize(mask=True) * count


@asynccontextmanager
async def edge_process(directory: Path, **settings: int) -> AsyncIterator[tuple[str, ServiceProcess]]:
    """Yields the command `ws-edge run`, which is ready, and its address."""
    port, ends = free_port(), {"drain_notice_ms": 0, "drain_window_ms": 0}
    async with FakeQueryService() as service:
        known = {"query_addresses": service.address, "query_timeout_ms": 20_000, "gateway_secret": SECRET, "port": port}
        with ServiceProcess("ws_edge", known | ends | settings, directory / "log", port) as process:
            process.start()
            await asyncio.to_thread(process.wait_ready)
            yield f"127.0.0.1:{port}", process


def throttled_s(process: ServiceProcess) -> float:
    """Returns the seconds in which the edge did not read sockets."""
    return process.metric("ws_edge_throttled_seconds_total")


async def longest_answer(address: str) -> float:
    """Returns the longest time of an answer to another client."""
    longest = 0.0
    headers = gateway_headers(SECRET, "customer-0002", "customers")
    async with connect(f"ws://{address}/v1/stream", additional_headers=headers) as socket:
        for _ in range(100):
            began = time.monotonic()
            await socket.send(json.dumps({"ping": {}}))
            await socket.recv()
            longest = max(longest, time.monotonic() - began)
    return longest


async def test_a_flood_of_any_frames_is_read_slowly_and_delays_nobody(tmp_path: Path) -> None:
    async with edge_process(tmp_path, frames_burst_s=5) as (address, process):
        before = process.rss_bytes
        for number, kind in enumerate(FLOODS):
            throttled = await asyncio.to_thread(throttled_s, process)
            async with RawClient(address, f"customer-1{number}") as client:
                client.writer.write(encoded(kind, 300_000))

                async def is_throttled(throttled: float = throttled) -> bool:
                    return await asyncio.to_thread(throttled_s, process) > throttled

                await wait_until_async(is_throttled, f"{kind} are not read more slowly")
                longest = await longest_answer(address)
                client.writer.transport.abort()

            assert longest < scaled(3), kind
        after = process.rss_bytes

    assert after < before + 40_000_000


async def test_nothing_is_read_of_a_client_that_does_not_read(tmp_path: Path) -> None:
    """The limits of frames are so high here that they bound nothing."""
    many = {"consumer_frames_per_s": 10_000_000, "address_frames_per_s": 10_000_000}
    async with edge_process(tmp_path, **many) as (address, process), RawClient(address, "customer-0001") as client:
        before = process.rss_bytes
        transport = client.writer.transport
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # nothing of it is public
        client.writer.write(encoded("pings", 300_000))
        unsent = [transport.get_write_buffer_size()]

        def stands_still() -> bool:
            unsent.append(transport.get_write_buffer_size())
            return len(unsent) > 20 and len(set(unsent[-20:])) == 1

        await wait_until_async(stands_still, "the edge reads on")
        after = process.rss_bytes
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        await wait_until_async(lambda: transport.get_write_buffer_size() < unsent[-1], "the edge reads no more")
        transport.abort()

    assert unsent[-1] > 1_000_000
    assert after < before + 10_000_000


async def test_a_client_may_ping_and_send_parts_within_its_limits(edge: RunningEdge) -> None:
    async with edge.socket() as socket:
        for _ in range(200):
            await (await socket.ping())
            await socket.pong()
        await socket.send(iter(['{"type": "order_updates_', "", "", 'request", "order_id": "1"}']))
        frame = json.loads(await asyncio.wait_for(socket.recv(), 30))

    assert frame["data"]["status"] == "Unknown"


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_client_that_goes_on_after_the_close_is_cut_off(edge: RunningEdge, kind: str) -> None:
    async with RawClient(edge.address, "customer-0001") as client:
        await until(lambda: len(edge.parts.sockets) == 1)
        await edge.parts.sockets.drain(0, 0)
        client.writer.write(encoded(kind, 50_000))
        received = await client.rest()

    assert (1012).to_bytes(2, "big") in received
    await until(lambda: not edge.parts.server.server_state.connections)


async def test_what_comes_before_a_socket_is_open_waits(edge: RunningEdge) -> None:
    host, port = edge.address.split(":")
    client = sockets.create_connection((host, int(port)))
    headers = "".join(f"{name}: {value}\r\n" for name, value in edge.headers().items())
    request = f"GET /update/orders/1 HTTP/1.1\r\nHost: edge\r\n{UPGRADE}{headers}\r\n".encode()
    ping = Frame(Opcode.PING, b"early").serialize(mask=True)
    client.sendall(request + ping * 3)
    reader, writer = await asyncio.open_connection(sock=client)
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"Unknown")
    writer.close()

    assert head.startswith(b"HTTP/1.1 101")
