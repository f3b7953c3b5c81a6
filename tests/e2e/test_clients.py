"""The live clients in Python and in Chromium keep their promises through the real gateway."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

import pytest
from drivers.push_clients import browser_participant, python_participant
from drivers.push_scenario import PushParticipant, play
from drivers.relay import Relay
from drivers.source import OrderSource

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus

Connect = Callable[[str, Mapping[str, str]], AbstractAsyncContextManager[PushParticipant]]


class RealWorld:
    """Orders whose changes go the whole way, and a cut between client and gateway."""

    me, somebody_else = "customer-0001", "customer-0002"

    def __init__(self, source: OrderSource, relay: Relay) -> None:
        self._source, self._relay = source, relay
        self.mine = source.place(self.me, {"item-a": 1}).order_id
        self.foreign = source.place(self.somebody_else, {"item-a": 1}).order_id

    async def advance(self, status: str) -> None:
        number = OrderStatus.Value(f"ORDER_STATUS_{status.upper()}")
        await asyncio.to_thread(self._source.advance, self.mine, number)

    async def cut(self) -> None:
        await self._relay.cut()


@pytest.mark.parametrize("connect", [python_participant, browser_participant], ids=["python", "browser"])
async def test_a_client_keeps_the_promises_of_the_protocol(
    stack: RunningStack, source: OrderSource, connect: Connect
) -> None:
    headers = {"apikey": stack.file.credentials["alice"].key or ""}
    gateway = stack.file.gateway.http.removeprefix("http://")
    async with Relay(gateway) as relay:
        world = RealWorld(source, relay)
        async with connect(relay.address, headers) as client:
            await play(client, world)
