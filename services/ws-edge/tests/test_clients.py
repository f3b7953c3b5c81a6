"""Both clients play the same scenarios against a real edge: connections break, access expires and is revoked."""

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.push_clients import browser_client, python_client
from testkit.push_scenario import MINE, ClientCredentials, ScenarioClient, play, play_expiry, wait_received
from testkit.relay import Relay
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge, SystemClock, claims
from ws_edge.model.states import StoreKey

SORT = "2024-08-28T12:34:56.123456Z"
SHORT_S, LONG_S = scaled(6), 3600.0


class Connect(Protocol):
    """Connects a client."""

    def __call__(
        self, address: str, headers: Mapping[str, str], credentials: ClientCredentials | None = None
    ) -> AbstractAsyncContextManager[ScenarioClient]: ...


both_clients = pytest.mark.parametrize("connect", [python_client, browser_client], ids=["python", "browser"])


class ScriptedOrders:
    """Orders in the scripted query service."""

    own_order, foreign_order = "order-1", "order-2"
    consumer, other_consumer = "customer-0001", "customer-0002"

    def __init__(self, edge: RunningEdge, relay: Relay | None = None) -> None:
        self._edge, self._relay = edge, relay
        self._put(self.own_order, self.consumer, "Placed")
        self._put(self.foreign_order, self.other_consumer, "Placed")

    async def advance(self, status: str) -> None:
        self._put(self.own_order, self.consumer, status)

    async def cut(self) -> None:
        assert self._relay is not None
        await self._relay.cut()

    def _put(self, order_id: str, customer_id: str, status: str) -> None:
        number = OrderStatus.Value(f"ORDER_STATUS_{status.upper()}")
        row = Order(order_id=order_id, customer_id=customer_id, status=number)
        self._edge.query.put(StoreKey("orders-by-key", order_id), row)
        self._edge.query.put(StoreKey("orders-by-customer", customer_id, SORT, order_id), row)


def without_claims(edge: RunningEdge) -> dict[str, str]:
    """What the gateway would send beside the claims of a token."""
    return {name: value for name, value in edge.headers().items() if name != "X-Gateway-Claims"}


@both_clients
async def test_a_client_keeps_the_promises_of_the_protocol(edge: RunningEdge, connect: Connect) -> None:
    async with Relay(edge.address) as relay, connect(relay.address, edge.headers()) as client:
        await play(client, ScriptedOrders(edge, relay))


@pytest.mark.parametrize(
    "connect",
    [pytest.param(python_client, id="python"), pytest.param(browser_client, id="browser", marks=pytest.mark.long)],
)
async def test_a_client_renews_its_access_in_time_and_resumes_when_it_is_too_late(connect: Connect) -> None:
    credentials = ClientCredentials(
        lambda seconds: {"X-Gateway-Claims": claims(exp=time.time() + seconds)}, SHORT_S, LONG_S
    )
    async with (
        RunningEdge(wall_clock=SystemClock()) as edge,
        connect(edge.address, without_claims(edge), credentials) as client,
    ):
        await play_expiry(client, ScriptedOrders(edge), credentials.needs)


@both_clients
async def test_a_client_whose_access_was_revoked_reports_it(keeping_edge: RunningEdge, connect: Connect) -> None:
    orders = ScriptedOrders(keeping_edge)
    address, headers = keeping_edge.address, keeping_edge.headers()
    async with keeping_edge.client("", "staff") as operator, connect(address, headers) as client:
        await client.watch(MINE, "orders-by-key", orders.own_order)
        await wait_received(client, MINE, lambda received: received.statuses == ["Placed"])
        answer = await operator.post("/v1/revocations", json={"consumer": orders.consumer})
        received = await wait_received(client, MINE, lambda received: received.refused is not None)

    assert answer.is_success
    assert received.refused == "4403"


@both_clients
async def test_a_frame_that_is_too_large_ends_a_client_which_names_the_limit(connect: Connect) -> None:
    async with RunningEdge(max_frame_bytes=1024) as edge, connect(edge.address, edge.headers()) as client:
        await client.watch(MINE, "orders-by-key", "x" * 2000)
        received = await wait_received(client, MINE, lambda received: received.refused is not None)

    assert received.refused == "1009"
    assert "1024" in received.reason
