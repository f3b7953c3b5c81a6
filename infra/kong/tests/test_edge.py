"""A real edge behind the gateway gets every header that it requires, and nothing that a client makes up."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from kong_envoy import render
from statecast.orders.v1.order_pb2 import Order
from testkit.gateway_under_test import TARGET, running_envoy, token
from testkit.ports import free_ports
from testkit.waiting import scaled, wait_until_async
from testkit.ws_edge.edge import SECRET, RunningEdge, SystemClock
from ws_edge.states import StoreKey

ORDER = StoreKey("orders-by-key", "12345")
KEY = {"apikey": "alice-demo-key"}
SUBSCRIBE = json.dumps({"id": "1", "subscribe": {"store": ORDER.store, "key": {"group": ORDER.group}}})


@dataclass(frozen=True)
class EdgeBehindGateway:
    http: AsyncClient
    address: str

    def socket(self, path: str, headers: Mapping[str, str], offers: tuple[str, ...] = ()) -> connect:
        subprotocols = [Subprotocol(offer) for offer in offers] or None
        return connect(f"ws://{self.address}{path}", additional_headers=headers, subprotocols=subprotocols)


@asynccontextmanager
async def running(document: dict[str, Any], directory: Path) -> AsyncIterator[EdgeBehindGateway]:
    """An edge that knows an order of alice's, behind the gateway with the document."""
    listen, admin = (f"127.0.0.1:{port}" for port in free_ports(2))
    async with RunningEdge(min_interval_ms=20, wall_clock=SystemClock()) as edge:
        edge.query.put(ORDER, Order(order_id=ORDER.group, customer_id="customer-0001"))
        resolve = {TARGET: [edge.address]}
        environment = {"GATEWAY_SECRET": SECRET}
        config = render(document, listen_http=listen, environment=environment, resolve=resolve, admin=admin)
        with running_envoy(config, directory):
            async with AsyncClient(base_url=f"http://{listen}", trust_env=False) as http:

                async def answers() -> bool:
                    return (await http.get("/docs")).status_code == 200

                await wait_until_async(answers, "the gateway finds the edge")
                yield EdgeBehindGateway(http, listen)


@pytest.fixture
async def edge(document: dict[str, Any], tmp_path: Path) -> AsyncIterator[EdgeBehindGateway]:
    async with running(document, tmp_path) as behind:
        yield behind


async def changed(socket: ClientConnection) -> dict[str, Any]:
    """The first value of the order that the socket is told after it has asked."""
    await socket.send(SUBSCRIBE)
    async with asyncio.timeout(scaled(30)):
        while "changed" not in (frame := json.loads(await socket.recv())):
            continue
    value: dict[str, Any] = frame["changed"]
    return value


@pytest.mark.parametrize("headers", [KEY, KEY | {"Connection": "keep-alive, X-Nothing"}])
async def test_calls_and_sockets_of_consumers_are_served(edge: EdgeBehindGateway, headers: dict[str, str]) -> None:
    signed_in = (await edge.http.get("/v1/consumer", headers=headers)).json()
    order = await edge.http.get(f"/update/orders/{ORDER.group}", headers=headers)
    async with edge.socket("/v1/stream", KEY) as socket:
        value = await changed(socket)

    assert signed_in == {"id": "customer-0001", "name": "alice", "staff": False}
    assert order.status_code == 200
    assert value["key"] == {"group": ORDER.group}


async def test_a_browser_opens_a_socket_with_a_ticket(edge: EdgeBehindGateway) -> None:
    ticket = (await edge.http.post("/v1/tickets", headers=KEY)).json()["ticket"]
    offers = ("statecast.push.v1+json", f"statecast.ticket.{ticket}")
    async with edge.socket("/v1/tickets/stream", {}, offers) as socket:
        value = await changed(socket)

    assert socket.subprotocol == offers[0]
    assert value["key"] == {"group": ORDER.group}


async def test_a_client_that_names_the_claims_in_connection_does_not_outlive_its_token(
    edge: EdgeBehindGateway,
) -> None:
    """Kong takes the header away, and then the edge refuses; Envoy keeps it."""
    named = {"Authorization": f"Bearer {token('alice')}", "Connection": "keep-alive, X-Gateway-Claims"}
    answer = await edge.http.post("/v1/tickets", headers=named)

    assert answer.status_code == 403 or answer.json()["expires_at"]


async def test_a_token_that_never_ends_is_refused_by_gateway_or_edge(edge: EdgeBehindGateway) -> None:
    for expiry in (10**30, 2**63, 10**12):
        headers = {"Authorization": f"Bearer {token('alice', exp=expiry)}"}

        assert (await edge.http.get("/v1/consumer", headers=headers)).status_code in (401, 403)


async def test_a_handshake_with_too_many_headers_is_answered(edge: EdgeBehindGateway) -> None:
    """Envoy allows a hundred, and the library 128."""
    host, port = edge.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = "".join(f"X-{number}: 1\r\n" for number in range(130))
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    request = f"GET /v1/tickets/stream HTTP/1.1\r\nHost: x\r\n{upgrade}Sec-WebSocket-Key: {'A' * 22}==\r\n{lines}\r\n"
    writer.write(request.encode())
    async with asyncio.timeout(scaled(30)):
        answer = await reader.readline()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 431 ")
