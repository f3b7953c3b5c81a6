"""A socket is closed when its access ends, unless that is renewed."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import Clock, RunningEdge, refusal_of, until
from ws_edge.auth.expiry import ExpiryTimer, expiry_of
from ws_edge.auth.gateway import Credential
from ws_edge.codec.frames import JSON_SUBPROTOCOL
from ws_edge.errors import CLOSE_EXPIRED
from ws_edge.model.states import StoreKey
from ws_edge.session.sockets import TICKET_SUBPROTOCOL

KEY = StoreKey("orders-by-key", "12345")
SOON_S = 0.1


async def ticket(edge: RunningEdge, consumer: str = "customer-0001", expires_at: float | None = None) -> dict[str, Any]:
    headers = edge.headers(consumer, expires_at=expires_at)
    async with edge.client(headers=headers) as client:
        answer = await client.post("/v1/tickets")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "private, no-store")
    document: dict[str, Any] = answer.json()
    return document


def offers(*tickets: str) -> list[str]:
    """Returns the subprotocols that a browser offers with these tickets."""
    return [JSON_SUBPROTOCOL, *(TICKET_SUBPROTOCOL + each for each in tickets)]


async def close_code_of(socket: ClientConnection) -> int:
    """Waits until the socket is closed."""
    async with asyncio.timeout(30):
        await socket.wait_closed()
    assert socket.close_code is not None
    return socket.close_code


@pytest.mark.parametrize("path", ["/update/orders", "/update/orders/12345", "/v1/stream"])
async def test_a_socket_is_closed_when_its_credential_expires(edge: RunningEdge, path: str) -> None:
    edge.query.put(KEY, Order(order_id=KEY.group, customer_id="customer-0001"))
    async with edge.socket(path, expires_at=edge.wall_clock.now + SOON_S) as socket:
        await socket.send("{")
        await socket.recv()
        edge.wall_clock.now += SOON_S

        assert await close_code_of(socket) == CLOSE_EXPIRED
    await until(lambda: edge.parts.hub.subscriptions == 0)


async def renewed(socket: ClientConnection, ticket: str) -> dict[str, Any]:
    """Renews on `/v1/stream`; returns the answer."""
    await socket.send(json.dumps({"renew": {"ticket": ticket}}))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer


async def test_a_renewed_socket_goes_on(edge: RunningEdge) -> None:
    now = edge.wall_clock.now
    renewal = await ticket(edge, expires_at=now + 3600)
    async with edge.socket("/v1/stream", expires_at=now + 60) as socket:
        hello = json.loads(await socket.recv())["hello"]
        answer = await renewed(socket, renewal["ticket"])
        edge.wall_clock.now += 61
        await socket.send(json.dumps({"ping": {}}))
        pong = json.loads(await socket.recv())

    assert renewal["expires_in_s"] == 60, "of the ticket"
    assert 59 <= hello["expires_in_s"] <= 60
    assert 3599 <= answer["access"]["expires_in_s"] <= 3600
    assert "ping" in pong


async def test_a_socket_of_orders_is_renewed_in_its_own_form(edge: RunningEdge) -> None:
    renewal = await ticket(edge, expires_at=edge.wall_clock.now + 3600)
    async with edge.socket(expires_at=edge.wall_clock.now + 60) as socket:
        await socket.send(json.dumps({"type": "auth_refresh", "ticket": renewal["ticket"]}))
        answer = json.loads(await socket.recv())

    assert answer["type"] == "authenticated"
    assert 3599 <= answer["expires_in_s"] <= 3600


async def test_a_ticket_of_another_consumer_is_refused_and_renews_nothing(edge: RunningEdge) -> None:
    renewal = await ticket(edge, "customer-0002", edge.wall_clock.now + 3600)
    async with edge.socket("/v1/stream", expires_at=edge.wall_clock.now + SOON_S) as socket:
        await socket.recv()
        answer = await renewed(socket, renewal["ticket"])
        edge.wall_clock.now += SOON_S

        assert answer["error"]["code"] == "ticket_refused"
        assert await close_code_of(socket) == CLOSE_EXPIRED


async def test_a_token_that_has_just_expired_closes_its_socket_at_once(edge: RunningEdge) -> None:
    async with edge.socket(expires_at=edge.wall_clock.now - 1) as socket:
        assert await close_code_of(socket) == CLOSE_EXPIRED


@pytest.mark.parametrize(
    "name",
    ["X-Gateway-Claims", "X-Consumer-Custom-ID", "X-Consumer-Username", "X-Consumer-Groups", "X-Forwarded-For"],
)
async def test_a_client_cannot_shed_its_expiry_or_its_name_by_the_header_connection(
    edge: RunningEdge, name: str
) -> None:
    """The gateway deletes each header that the client names in `Connection`, so one that decides may not be missing."""
    headers = edge.headers("operator", "staff", expires_at=edge.wall_clock.now + SOON_S)
    del headers[name]
    async with edge.client(headers=headers) as client:
        answer = await client.post("/v1/tickets")
    refusal = await refusal_of(connect(f"ws://{edge.address}/v1/stream", additional_headers=headers))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway_required")
    assert f"{name.lower()} is missing" in answer.json()["error"]["message"]
    assert refusal.status_code == 403


async def test_a_ticket_needs_the_gateways_proof(edge: RunningEdge) -> None:
    async with edge.client(headers={}) as client:
        answer = await client.post("/v1/tickets", headers={"X-Consumer-Custom-ID": "customer-0001"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway_required")


async def test_a_ticket_opens_the_socket_of_a_client_that_cannot_send_headers(edge: RunningEdge) -> None:
    opening = await ticket(edge, expires_at=edge.wall_clock.now + SOON_S)
    edge.query.put(KEY, Order(order_id=KEY.group, customer_id="customer-0001"))
    watch = {"id": 1, "store": KEY.store, "group": KEY.group}
    async with edge.stranger_socket("/v1/tickets/stream", offers(opening["ticket"])) as socket:
        await socket.send(json.dumps({"watch": [watch]}))
        answers = [json.loads(await socket.recv())]
        while "rows" not in answers[-1]:
            answers.append(json.loads(await socket.recv()))
        edge.wall_clock.now += SOON_S

        assert await close_code_of(socket) == CLOSE_EXPIRED
    assert socket.subprotocol == JSON_SUBPROTOCOL
    assert "hello" in answers[0]
    assert answers[-1]["rows"][0]["row"]["order_id"] == KEY.group


@pytest.mark.parametrize("tickets", [(), ("",), ("made.up",), ("a", "b")])
async def test_without_a_valid_ticket_the_socket_is_refused(edge: RunningEdge, tickets: tuple[str, ...]) -> None:
    refusal = await refusal_of(edge.stranger_socket("/v1/tickets/stream", offers(*tickets)))

    assert refusal.status_code in (400, 401)


async def test_a_ticket_in_the_address_where_logs_show_it_opens_nothing(edge: RunningEdge) -> None:
    opening = await ticket(edge)
    refusal = await refusal_of(edge.stranger_socket(f"/v1/tickets/stream?ticket={opening['ticket']}", offers()))

    assert refusal.status_code == 400


async def test_a_ticket_that_somebody_has_seen_opens_no_second_socket(edge: RunningEdge) -> None:
    opening = await ticket(edge)
    async with edge.stranger_socket("/v1/tickets/stream", offers(opening["ticket"])):
        refusal = await refusal_of(edge.stranger_socket("/v1/tickets/stream", offers(opening["ticket"])))

    assert refusal.status_code == 401
    assert "used before" in json.loads(refusal.body)["error"]["message"]


async def test_tickets_are_only_accepted_through_the_gateway(edge: RunningEdge) -> None:
    opening = await ticket(edge)
    connecting = edge.stranger_socket("/v1/tickets/stream", offers(opening["ticket"]))
    connecting.additional_headers = {}
    refusal = await refusal_of(connecting)

    assert refusal.status_code == 403


async def test_a_timer_calls_back_when_its_time_has_come() -> None:
    clock, ended = Clock(), asyncio.Event()
    timer = ExpiryTimer(clock, ended.set)
    timer.renew(clock.now + 0.01)
    await asyncio.sleep(0.05)
    early = ended.is_set()
    clock.now += 0.01
    async with asyncio.timeout(30):
        await ended.wait()

    assert not early


async def test_a_time_in_the_past_calls_back_at_once() -> None:
    clock, ended = Clock(), asyncio.Event()
    ExpiryTimer(clock, ended.set).renew(0.0)
    async with asyncio.timeout(30):
        await ended.wait()


async def test_a_timer_that_was_renewed_or_cancelled_does_not_call_back() -> None:
    clock, ended = Clock(), asyncio.Event()
    renewed, cancelled = (ExpiryTimer(clock, ended.set) for _ in range(2))
    renewed.renew(0.0)
    renewed.renew(1e12)
    cancelled.renew(0.0)
    cancelled.cancel()
    renewed_later = asyncio.Event()
    ExpiryTimer(clock, renewed_later.set).renew(0.0)
    async with asyncio.timeout(30):
        await renewed_later.wait()

    assert not ended.is_set()
    renewed.cancel()


async def test_the_access_of_a_key_has_an_end_too() -> None:
    async with RunningEdge(max_access_s=0.02) as edge, edge.socket() as socket:
        edge.wall_clock.now += 1

        assert await close_code_of(socket) == CLOSE_EXPIRED


def test_sockets_that_were_opened_together_do_not_end_together() -> None:
    chances = iter((0.0, 0.5, 0.999))
    ends = [expiry_of(Credential(), 1000.0, 100.0, lambda: next(chances)) for _ in range(3)]

    assert ends == pytest.approx([1080, 1090, 1099.98])
    assert expiry_of(Credential(expires_at=1500.0), 1000.0, 1000.0) == 1500
