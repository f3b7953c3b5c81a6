"""Both clients play the same scenario against a real edge whose connections can be cut."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
from drivers.push_clients import browser_participant, python_participant
from drivers.push_scenario import PushParticipant, play
from drivers.relay import Relay

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from ws_edge.states import StoreKey
from ws_edge.testing.edge import RunningEdge

SORT = "2024-08-28T12:34:56.123456Z"
Connect = Callable[[str, Mapping[str, str]], AbstractAsyncContextManager[PushParticipant]]


class ScriptedWorld:
    """Orders in the scripted query service."""

    mine, foreign = "order-1", "order-2"
    me, somebody_else = "customer-0001", "customer-0002"

    def __init__(self, edge: RunningEdge, relay: Relay) -> None:
        self._edge, self._relay = edge, relay
        self._put(self.mine, self.me, "Placed")
        self._put(self.foreign, self.somebody_else, "Placed")

    async def advance(self, status: str) -> None:
        self._put(self.mine, self.me, status)

    async def cut(self) -> None:
        await self._relay.cut()

    def _put(self, order_id: str, customer_id: str, status: str) -> None:
        number = OrderStatus.Value(f"ORDER_STATUS_{status.upper()}")
        row = Order(order_id=order_id, customer_id=customer_id, status=number)
        self._edge.query.put(StoreKey("orders-by-key", order_id), row)
        self._edge.query.put(StoreKey("orders-by-customer", customer_id, SORT, order_id), row)


@pytest.mark.parametrize("connect", [python_participant, browser_participant], ids=["python", "browser"])
async def test_a_client_keeps_the_promises_of_the_protocol(edge: RunningEdge, connect: Connect) -> None:
    async with Relay(edge.address) as relay, connect(relay.address, edge.headers()) as client:
        await play(client, ScriptedWorld(edge, relay))
