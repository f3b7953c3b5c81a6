"""A real edge behind the gateway gets every header that it requires, and nothing that a client makes up."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient, Response
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from kong_envoy import render
from statecast.orders.v1.order_pb2 import Order
from testkit.gateway_under_test import TARGET, running_envoy, token
from testkit.ports import free_ports
from testkit.waiting import scaled, wait_until_async
from testkit.ws_edge.edge import SECRET, RunningEdge, SystemClock
from ws_edge.model.states import StoreKey

ORDER = StoreKey("orders-by-key", "12345")
KEY = {"apikey": "alice-demo-key"}
TOKEN_S = 600
LISTED = ["https://app.example.org", "http://localhost:3000"]
WATCH = json.dumps({"watch": [{"id": 1, "store": ORDER.store, "group": ORDER.group}]})


@dataclass(frozen=True)
class EdgeBehindGateway:
    http: AsyncClient
    address: str

    def socket(self, path: str, headers: Mapping[str, str], offers: tuple[str, ...] = ()) -> connect:
        subprotocols = [Subprotocol(offer) for offer in offers] or None
        return connect(f"ws://{self.address}{path}", additional_headers=headers, subprotocols=subprotocols)


@asynccontextmanager
async def running(document: dict[str, Any], directory: Path, **settings: Any) -> AsyncIterator[EdgeBehindGateway]:
    """Runs an edge with an order of alice's, and the origins of the document, behind the gateway with the document."""
    listen, admin = (f"127.0.0.1:{port}" for port in free_ports(2))
    origins = ",".join(next(each for each in document["plugins"] if each["name"] == "cors")["config"]["origins"])
    async with RunningEdge(min_interval_ms=20, wall_clock=SystemClock(), origins=origins, **settings) as edge:
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


async def watched(socket: ClientConnection) -> list[dict[str, Any]]:
    """The rows of the order that the socket is told until it has everything."""
    await socket.send(WATCH)
    rows = list[dict[str, Any]]()
    async with asyncio.timeout(scaled(30)):
        while True:
            frame = json.loads(await socket.recv())
            rows += (each["row"] for each in frame.get("rows", ()))
            if "current" in frame:
                return rows


def offers_of(ticket: Response) -> tuple[str, str]:
    """Returns the subprotocols that a browser offers with a ticket."""
    return "statecast.push.v2+json", f"statecast.ticket.{ticket.json()['ticket']}"


@pytest.mark.parametrize("headers", [KEY, KEY | {"Connection": "keep-alive, X-Nothing"}])
async def test_calls_and_sockets_of_consumers_are_served(edge: EdgeBehindGateway, headers: dict[str, str]) -> None:
    signed_in = (await edge.http.get("/v1/consumer", headers=headers)).json()
    order = await edge.http.get(f"/update/orders/{ORDER.group}", headers=headers)
    async with edge.socket("/v1/stream", KEY) as socket:
        [row] = await watched(socket)

    assert signed_in == {"id": "customer-0001", "name": "alice", "staff": False}
    assert order.status_code == 200
    assert row["order_id"] == ORDER.group


async def test_an_id_and_a_name_beyond_ascii_reach_the_edge_as_they_are(
    document: dict[str, Any], tmp_path: Path
) -> None:
    [alice] = [each for each in document["consumers"] if each["username"] == "alice"]
    alice |= {"username": "客户-7", "custom_id": "kundé-ä"}
    async with running(document, tmp_path) as edge:
        signed_in = (await edge.http.get("/v1/consumer", headers=KEY)).json()
        async with edge.socket("/v1/stream", KEY) as socket:
            rows = await watched(socket)

    assert signed_in == {"id": "kundé-ä", "name": "客户-7", "staff": False}
    assert rows == [], "the order is of customer-0001"


async def test_a_browser_opens_a_socket_with_a_ticket(edge: EdgeBehindGateway) -> None:
    offers = offers_of(await edge.http.post("/v1/tickets", headers=KEY))
    async with edge.socket("/v1/tickets/stream", {}, offers) as socket:
        [row] = await watched(socket)

    assert socket.subprotocol == offers[0]
    assert row["order_id"] == ORDER.group


@pytest.mark.parametrize(
    "path", [f"/update/orders/{ORDER.group}", f"/v1/stores/{ORDER.store}/rows?group={ORDER.group}"]
)
async def test_caches_are_told_by_the_edge_what_they_may_keep(
    document: dict[str, Any], tmp_path: Path, path: str
) -> None:
    stores = f"stores: [{{name: {ORDER.store}, message: statecast.orders.v1.Order, readers: everyone}}]"
    async with running(document, tmp_path, stores=stores) as edge:
        answer = await edge.http.get(path, headers=KEY)
        same = await edge.http.get(path, headers=KEY | {"If-None-Match": answer.headers["ETag"]})

    assert (answer.status_code, same.status_code) == (200, 304)
    assert same.headers["ETag"] == answer.headers["ETag"]
    assert re.fullmatch(r'W/"[0-9a-f]{32}-7-1"', answer.headers["ETag"])
    for each in (answer, same):
        assert each.headers["Cache-Control"] == "public, max-age=5, stale-while-revalidate=30"


@pytest.mark.parametrize("path", ["/v1/consumer", "/update/orders/unknown"])
async def test_nobody_keeps_what_has_no_etag(edge: EdgeBehindGateway, path: str) -> None:
    answer = await edge.http.get(path, headers=KEY)

    assert answer.headers.get_list("Cache-Control") == ["private, no-store"]


@pytest.mark.parametrize("path", ["/docs", "/", "/statecast.js", "/openapi.json"])
async def test_pages_for_everybody_are_served_whoever_a_client_says_that_it_is(
    edge: EdgeBehindGateway, path: str
) -> None:
    forged = [("X-Consumer-Groups", "staff"), ("x-consumer-groups", "staff"), ("X_Consumer_Groups", "staff")]
    answer = await edge.http.get(path, headers=[*forged, ("X-Gateway-Secret", "forged"), ("X-Gateway-Claims", "none")])

    assert answer.status_code == 200


@pytest.mark.parametrize("origin", LISTED)
async def test_a_page_of_a_listed_site_gets_a_ticket_and_opens_a_socket_with_it(
    edge: EdgeBehindGateway, origin: str
) -> None:
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "apikey"}
    preflight = await edge.http.options("/v1/tickets", headers=asks)
    answer = await edge.http.post("/v1/tickets", headers=KEY | {"Origin": origin})
    offers = offers_of(answer)
    async with edge.socket("/v1/tickets/stream", {"Origin": origin}, offers) as socket:
        [row] = await watched(socket)

    assert [each.headers["access-control-allow-origin"] for each in (preflight, answer)] == [origin] * 2
    assert row["order_id"] == ORDER.group


@pytest.mark.parametrize("origin", ["https://evil.example", "http://app.example.org", "http://localhost:3001"])
async def test_a_page_of_another_site_neither_reads_a_ticket_nor_opens_a_socket(
    edge: EdgeBehindGateway, origin: str
) -> None:
    answer = await edge.http.post("/v1/tickets", headers=KEY | {"Origin": origin})
    offers = offers_of(answer)
    with pytest.raises(InvalidStatus) as refusal:
        async with edge.socket("/v1/tickets/stream", {"Origin": origin}, offers):
            pass

    assert "access-control-allow-origin" not in answer.headers
    assert refusal.value.response.status_code == 403


async def test_a_client_that_names_the_claims_in_connection_does_not_outlive_its_token(
    edge: EdgeBehindGateway,
) -> None:
    """Kong takes the header away, and then the edge refuses; Envoy keeps it."""
    named = {
        "Authorization": f"Bearer {token('alice', expires_in=TOKEN_S)}",
        "Connection": "keep-alive, X-Gateway-Claims",
    }
    answer = await edge.http.post("/v1/tickets", headers=named)

    if answer.status_code != 403:
        async with edge.socket("/v1/tickets/stream", {}, offers_of(answer)) as socket:
            hello = json.loads(await socket.recv())["hello"]

        assert 0 < hello["expires_in_s"] <= TOKEN_S


async def test_a_token_that_never_ends_is_refused_by_gateway_or_edge(edge: EdgeBehindGateway) -> None:
    for expiry in (10**30, 2**63, 10**12):
        headers = {"Authorization": f"Bearer {token('alice', exp=expiry)}"}

        assert (await edge.http.get("/v1/consumer", headers=headers)).status_code in (401, 403)


async def test_a_handshake_with_too_many_headers_is_answered(edge: EdgeBehindGateway) -> None:
    """Envoy allows a hundred, and the edge 128."""
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
