"""Of a client that sends more than it may the edge reads more slowly."""

import asyncio
import json
from typing import Any

import pytest
from uvicorn.protocols.utils import ClientDisconnected

from testkit.waiting import scaled
from testkit.ws_edge.answers import SCORES
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.one_socket import OneSocket
from testkit.ws_edge.stream import stream_client

SLOWLY: dict[str, Any] = {"consumer_frames_per_s": 4, "frames_burst_s": 1}
"""A subscription costs a little more than two frames."""


async def test_no_request_is_lost_or_refused_of_a_client_that_sends_more_than_it_may() -> None:
    names = [str(number) for number in range(6)]
    async with RunningEdge(**SLOWLY) as edge, edge.socket() as socket:
        for name in names:
            await socket.send(json.dumps({"type": "order_updates_request", "order_id": name}))
        frames = [json.loads(await socket.recv()) for _ in names]
        slowed = edge.throttled_s

    assert [frame["data"]["order_id"] for frame in frames] == names
    assert slowed > 1


async def test_the_sockets_of_a_consumer_wait_in_one_line_and_those_of_others_in_none() -> None:
    async with RunningEdge(**SLOWLY) as edge, edge.socket() as first, edge.socket() as second:
        for _ in range(8):
            await first.ping()
        await until(lambda: edge.throttled_s > 0)
        await second.ping()
        before = edge.throttled_s
        async with edge.socket(consumer="customer-0002") as other:
            await (await other.ping())
        await until(lambda: edge.throttled_s > before)


async def test_large_messages_cost_more() -> None:
    async with RunningEdge(consumer_frames_per_s=10, frames_burst_s=1) as edge, edge.socket() as socket:
        await socket.send(json.dumps({"type": "order_updates_request", "order_id": "1"}) + " " * 12_000)
        await socket.recv()

        assert edge.throttled_s > 0.3


@pytest.mark.parametrize("how", ["drain", "expiry"])
async def test_a_throttled_socket_is_closed_as_soon_as_any_other(how: str) -> None:
    async with (
        RunningEdge(consumer_frames_per_s=1, frames_burst_s=1) as edge,
        edge.socket(expires_at=edge.wall_clock.now + 0.05) as socket,
    ):
        await socket.send(" " * 16_000)
        await until(lambda: edge.throttled_s > 10)
        if how == "drain":
            await edge.parts.sockets.drain(0, 0)
        edge.wall_clock.now += 1
        async with asyncio.timeout(scaled(5)):
            await socket.wait_closed()

    assert socket.close_code == {"drain": 1012, "expiry": 4401}[how]


async def test_the_debt_of_a_consumer_is_none_of_others_behind_its_address() -> None:
    """Each socket may owe a frame of 64,000 parts: with 1,000 sockets, all at the address stood still for hours."""
    limits: dict[str, Any] = {"consumer_frames_per_s": 10, "address_frames_per_s": 100}
    async with RunningEdge(**limits, frames_burst_s=5) as edge, stream_client(edge) as flooding:
        await flooding.say(unwatch=[1] * 20_000)
        await until(lambda: edge.throttled_s > 1000)
        quotas = edge.parts.sockets.admission.quotas
        [address] = [each for each in quotas.accounts.values() if each.name == "this address"]

        assert address.budget.pay(0, quotas.clock()) == 0
        flooding.socket.transport.abort()  # a close would wait for an answer


async def test_a_throttled_socket_ends_when_its_client_is_gone() -> None:
    async def send(_event: Any) -> None:
        raise ClientDisconnected

    async with asyncio.timeout(scaled(20)), OneSocket() as socket:
        socket.session.reservation.accounts[0].budget.rate = 0.001
        await socket.send(json.dumps({"unwatch": [1] * 20_000}))
        socket.session.writer.send = send
        await socket.passes(30)


async def test_a_pong_that_the_edge_does_not_read_yet_is_waited_for() -> None:
    lively: dict[str, Any] = {"ping_interval_s": 0.05, "ping_timeout_s": 0.1}
    async with RunningEdge(**SLOWLY, **lively) as edge, edge.socket() as socket:
        for name in "12345":
            await socket.send(json.dumps({"type": "order_updates_request", "order_id": name}))
        frames = [json.loads(await socket.recv()) for _ in range(5)]
        slowed = edge.throttled_s

    assert {frame["data"]["status"] for frame in frames} == {"Unknown"}
    assert slowed > 1
    assert socket.close_code == 1000


async def test_each_watch_of_a_frame_costs() -> None:
    watches = [{"id": number, "store": "orders-by-key", "group": "1"} for number in range(1, 31)]
    async with RunningEdge(consumer_frames_per_s=10, frames_burst_s=1) as edge, stream_client(edge) as client:
        await client.say(watch=watches)
        for number in range(1, 31):
            await client.until_current(number)

        assert edge.throttled_s > 1.9


async def test_others_get_their_turns_between_the_watches_of_a_frame() -> None:
    watches = [{"id": number, "store": "scores", "group": str(number)} for number in range(1, 501)]
    turns = 0
    async with OneSocket(SCORES) as socket:
        socket.receive(json.dumps({"watch": watches}))
        while socket.hub.subscriptions < len(watches):
            turns += 1
            await asyncio.sleep(0)

    assert turns >= 10


@pytest.mark.parametrize("path", ["/update/orders", "/v1/stream"])
async def test_the_empty_binary_message_by_which_a_phone_pings_is_ignored(edge: RunningEdge, path: str) -> None:
    async with edge.socket(path) as socket:
        await socket.send(b"")
        await socket.send("[]")
        frames = list[Any]()
        while not frames or "error" not in frames[-1]:
            frames.append(json.loads(await socket.recv()))
        await socket.close()
        frames += [json.loads(frame) async for frame in socket]

    assert [frame["error"]["code"] for frame in frames if "hello" not in frame] == ["malformed_frame"]
