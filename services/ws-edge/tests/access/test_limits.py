"""Limits that hold over all sockets of an edge, through real uvicorn with a real client."""

import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from ws_edge.errors import CLOSE_FLOOD
from ws_edge.testing.edge import RunningEdge, until


async def refused(edge: RunningEdge, **options: Any) -> tuple[int, str, str | None]:
    """Status, code and Retry-After of a handshake that must fail."""
    with pytest.raises(InvalidStatus) as refusal:
        await edge.socket(**options)
    response = refusal.value.response
    return response.status_code, json.loads(response.body)["error"]["code"], response.headers.get("Retry-After")


async def watch(socket: ClientConnection, order_id: str) -> dict[str, Any]:
    await socket.send(json.dumps({"type": "order_updates_request", "order_id": order_id}))
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def test_a_consumer_has_so_many_sockets_and_others_have_theirs() -> None:
    async with RunningEdge(consumer_sockets=1) as edge:
        async with edge.socket(), edge.socket(consumer="customer-0002"):
            status, code, retry_after = await refused(edge)
        await until(lambda: len(edge.parts.sockets) == 0)
        async with edge.socket():
            pass

    assert (status, code) == (429, "too_many_sockets")
    assert retry_after is not None
    assert 1 <= int(retry_after) <= 5


async def test_an_address_has_so_many_sockets() -> None:
    here, there = ({"X-Forwarded-For": f"203.0.113.9, {address}"} for address in ("198.51.100.1", "198.51.100.2"))
    async with RunningEdge(address_sockets=1) as edge, edge.socket(headers=here):
        status, code, _ = await refused(edge, consumer="customer-0002", headers=here)
        async with edge.socket(consumer="customer-0002", headers=there):
            pass

    assert (status, code) == (429, "too_many_sockets")


async def test_a_consumer_has_so_many_subscriptions_over_all_of_its_sockets() -> None:
    async with (
        RunningEdge(consumer_subscriptions=2, min_interval_ms=20) as edge,
        edge.socket() as first,
        edge.socket() as second,
    ):
        statuses = [
            (await watch(socket, socket_id))["data"]["status"] for socket, socket_id in ((first, "1"), (second, "2"))
        ]
        error = await watch(second, "3")
        again = await watch(second, "2")
        await first.send(json.dumps({"type": "order_updates_cancel", "order_id": "1"}))
        await first.recv()
        later = await watch(second, "3")

    assert statuses == ["Unknown", "Unknown"]
    assert (error["error"]["code"], error["error"]["order_id"]) == ("too_many_subscriptions", "3")
    assert again["data"]["order_id"] == "2"
    assert later["data"]["order_id"] == "3"


async def test_too_many_frames_are_refused_one_by_one_and_then_the_socket_is_closed() -> None:
    async with RunningEdge(consumer_frames_per_s=1, frames_burst_s=1) as edge, edge.socket() as socket:
        answers: list[dict[str, Any]] = []
        with suppress(ConnectionClosed):
            while len(answers) < 1000:
                answers += [await watch(socket, "1")]
        await socket.wait_closed()

    assert answers[0]["data"]["status"] == "Unknown"
    assert {"too_many_frames"} == {answer["error"]["code"] for answer in answers if "error" in answer}
    assert socket.close_code == CLOSE_FLOOD


async def test_more_sockets_at_a_time_than_the_pace_are_told_to_come_back() -> None:
    async with RunningEdge(sockets_per_s=0.001) as edge, edge.socket():
        status, code, retry_after = await refused(edge)

    assert (status, code) == (503, "busy")
    assert retry_after is not None


async def test_a_browser_on_another_site_is_refused(edge: RunningEdge) -> None:
    status, code, _ = await refused(edge, headers={"Origin": "https://evil.example"})
    async with edge.socket(headers={"Origin": f"http://{edge.address}"}):
        pass

    assert (status, code) == (403, "origin_refused")


async def test_the_sites_of_the_settings_may_open_sockets() -> None:
    async with RunningEdge(origins="https://app.example.org, https://other.example.org") as edge:
        async with edge.socket(headers={"Origin": "https://other.example.org"}):
            pass
        status, code, _ = await refused(edge, headers={"Origin": f"http://{edge.address}"})

    assert (status, code) == (403, "origin_refused")
