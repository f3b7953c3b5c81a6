"""Both clients play the same scenarios against a real edge: connections are cut, access expires and is ended."""

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest
from drivers.push_clients import browser_participant, python_participant
from drivers.push_scenario import MINE, PushParticipant, play, play_expiry, until
from drivers.relay import Relay
from drivers.waiting import scaled
from drivers.wallet import Wallet
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from ws_edge.states import StoreKey
from ws_edge.testing.edge import RunningEdge, Today, claims

SORT = "2024-08-28T12:34:56.123456Z"
SHORT_S, LONG_S = scaled(6), 3600.0


class Connect(Protocol):
    """Connects a client."""

    def __call__(
        self, address: str, headers: Mapping[str, str], wallet: Wallet | None = None
    ) -> AbstractAsyncContextManager[PushParticipant]: ...


both_clients = pytest.mark.parametrize("connect", [python_participant, browser_participant], ids=["python", "browser"])


class ScriptedWorld:
    """Orders in the scripted query service."""

    mine, foreign = "order-1", "order-2"
    me, somebody_else = "customer-0001", "customer-0002"

    def __init__(self, edge: RunningEdge, relay: Relay | None = None) -> None:
        self._edge, self._relay = edge, relay
        self._put(self.mine, self.me, "Placed")
        self._put(self.foreign, self.somebody_else, "Placed")

    async def advance(self, status: str) -> None:
        self._put(self.mine, self.me, status)

    async def cut(self) -> None:
        assert self._relay is not None
        await self._relay.cut()

    def _put(self, order_id: str, customer_id: str, status: str) -> None:
        number = OrderStatus.Value(f"ORDER_STATUS_{status.upper()}")
        row = Order(order_id=order_id, customer_id=customer_id, status=number)
        self._edge.query.put(StoreKey("orders-by-key", order_id), row)
        self._edge.query.put(StoreKey("orders-by-customer", customer_id, SORT, order_id), row)


@both_clients
async def test_a_client_keeps_the_promises_of_the_protocol(edge: RunningEdge, connect: Connect) -> None:
    async with Relay(edge.address) as relay, connect(relay.address, edge.headers()) as client:
        await play(client, ScriptedWorld(edge, relay))


@both_clients
async def test_a_client_renews_its_access_in_time_and_resumes_when_it_is_too_late(connect: Connect) -> None:
    wallet = Wallet(lambda seconds: {"X-Gateway-Claims": claims(exp=time.time() + seconds)}, SHORT_S, LONG_S)
    async with (
        RunningEdge(calendar=Today(), min_interval_ms=20, tick_ms=5) as edge,
        connect(edge.address, edge.headers(), wallet) as client,
    ):
        await play_expiry(client, ScriptedWorld(edge), wallet.needs)


@both_clients
async def test_a_client_whose_access_is_ended_by_the_operators_says_so(
    keeping_edge: RunningEdge, connect: Connect
) -> None:
    world = ScriptedWorld(keeping_edge)
    staff = AsyncClient(
        base_url=f"http://{keeping_edge.address}", headers=keeping_edge.headers("", "staff"), verify=False
    )
    async with staff as operator, connect(keeping_edge.address, keeping_edge.headers()) as client:
        await client.subscribe(MINE, "orders-by-key", world.mine)
        await until(client, MINE, lambda heard: heard.statuses == ["Placed"])
        answer = await operator.post("/v1/revocations", json={"consumer": world.me})
        heard = await until(client, MINE, lambda heard: heard.refused is not None)

    assert answer.is_success
    assert heard.refused == "4403"


@both_clients
async def test_a_frame_that_is_too_large_ends_a_client_which_names_the_limit(connect: Connect) -> None:
    async with RunningEdge(max_frame_bytes=1024) as edge, connect(edge.address, edge.headers()) as client:
        await client.subscribe(MINE, "orders-by-key", "x" * 2000)
        heard = await until(client, MINE, lambda heard: heard.refused is not None)

    assert heard.refused == "1009"
    assert "1024" in heard.reason
