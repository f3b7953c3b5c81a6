"""The live clients in Python and in Chromium keep their promises through the real gateway."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from signal import SIGINT
from textwrap import indent
from typing import Protocol

import pytest
from drivers.gateway_client import TokenClient
from drivers.order_source import OrderSource

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.push_clients import browser_client, python_client
from testkit.push_player import KOTLIN
from testkit.push_scenario import ClientCredentials, ScenarioClient, play, play_expiry
from testkit.relay import Relay
from testkit.waiting import scaled

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "client.md"
SHORT_S, LONG_S = 15.0, 600.0


class Connect(Protocol):
    """Connects a client."""

    def __call__(
        self, address: str, headers: Mapping[str, str], credentials: ClientCredentials | None = None
    ) -> AbstractAsyncContextManager[ScenarioClient]: ...


both_clients = pytest.mark.parametrize("connect", [python_client, browser_client], ids=["python", "browser"])


class PipelineOrders:
    """Orders with changes that go the whole way, and a cut between client and gateway."""

    consumer, other_consumer = "customer-0001", "customer-0002"

    def __init__(self, source: OrderSource, relay: Relay) -> None:
        self._source, self._relay = source, relay
        self.own_order = source.place(self.consumer, {"item-a": 1}).order_id
        self.foreign_order = source.place(self.other_consumer, {"item-a": 1}).order_id

    async def advance(self, status: str) -> None:
        number = OrderStatus.Value(f"ORDER_STATUS_{status.upper()}")
        await asyncio.to_thread(self._source.advance, self.own_order, number)

    async def cut(self) -> None:
        await self._relay.cut()


@both_clients
async def test_a_client_keeps_the_promises_of_the_protocol(
    stack: RunningStack, source: OrderSource, connect: Connect
) -> None:
    headers = {"apikey": stack.file.credentials["alice"].key or ""}
    gateway = stack.file.gateway.http.removeprefix("http://")
    async with Relay(gateway) as relay:
        orders = PipelineOrders(source, relay)
        async with connect(relay.address, headers) as client:
            await play(client, orders)


@pytest.mark.long
@both_clients
async def test_a_client_renews_its_access_in_time_and_resumes_when_it_is_too_late(
    stack: RunningStack, source: OrderSource, connect: Connect
) -> None:
    credentials = ClientCredentials(lambda seconds: TokenClient(stack, "alice", seconds).headers, SHORT_S, LONG_S)
    gateway = stack.file.gateway.http.removeprefix("http://")
    async with Relay(gateway) as relay, connect(relay.address, {}, credentials) as client:
        await play_expiry(client, PipelineOrders(source, relay), credentials.needs)


COMMANDS = {
    "python": (sys.executable, "-u", "-c"),
    "javascript": ("node", "--experimental-websocket", "--input-type=module", "--eval"),
    "kotlin": (*KOTLIN, "io.statecast.push.LinesKt"),
}
KOTLIN_LINES = ROOT / "clients" / "kotlin" / "src" / "test" / "kotlin" / "Lines.kt"


def lines_of(language: str, gateway: str) -> str:
    """Returns the page's lines in a language, as a program; in Kotlin the argument of one that has been compiled."""
    code = PAGE.read_text().split(f"```{language}\n")[1].split("```")[0]
    if language == "kotlin":
        compiled = indent(code.replace("ws://127.0.0.1:PORT", "$gateway"), "    ")
        assert compiled in KOTLIN_LINES.read_text(), f"{KOTLIN_LINES} has other lines than {PAGE}"
        return gateway
    code = code.replace("ws://127.0.0.1:PORT", gateway)
    if language == "javascript":
        return code
    head = "import asyncio\nfrom statecast_client.push import PushClient\nasync def main():\n"
    return f"{head}{indent(code, '    ')}\nasyncio.run(main())"


@pytest.mark.parametrize("language", COMMANDS)
async def test_the_lines_of_the_page_for_client_writers_write_orders_and_their_changes(
    stack: RunningStack, source: OrderSource, language: str
) -> None:
    order_id = source.place(PipelineOrders.consumer, {"item-a": 1}).order_id
    command = *COMMANDS[language], lines_of(language, stack.file.gateway.ws)
    program = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE)

    async def writes(status: str) -> None:
        assert program.stdout is not None
        while (line := await program.stdout.readline()) != f"{order_id} ORDER_STATUS_{status}\n".encode():
            assert line, "the program has ended"

    async with asyncio.timeout(scaled(60)):
        await writes("PLACED")
        await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_PAID)
        await writes("PAID")
    program.kill()
    await program.wait()


async def test_the_command_watches_through_the_gateway_until_it_is_interrupted(
    stack: RunningStack, source: OrderSource
) -> None:
    gateway, key = stack.file.gateway, stack.file.credentials["alice"].key or ""
    order_id = source.place(PipelineOrders.consumer, {"item-a": 1}).order_id
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "statecast_client", "watch", "orders-by-key", order_id, "--interval-ms", "1"),
        *("--push", "--gateway", gateway.wss, "--api-key", key, "--tls-ca", str(gateway.ca_certificate)),
        stdout=PIPE,
        stderr=PIPE,
    )
    assert command.stdout is not None
    async with asyncio.timeout(scaled(60)):
        while "ORDER_STATUS_PLACED" not in (line := (await command.stdout.readline()).decode()):
            assert line.startswith(order_id)
        await asyncio.to_thread(source.advance, order_id, OrderStatus.ORDER_STATUS_PAID)
        paid = (await command.stdout.readline()).decode()
    command.send_signal(SIGINT)
    _, errors = await command.communicate()

    assert '"status":"ORDER_STATUS_PAID"' in paid
    assert (command.returncode, errors) == (130, b"")
