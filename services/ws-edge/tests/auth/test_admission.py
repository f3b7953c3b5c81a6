"""Handshakes are admitted by origin, quotas, capacity and pace; the limits hold over all sockets of a real edge."""

import asyncio
import json
from contextlib import AsyncExitStack, nullcontext
from socket import create_connection
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from testkit.edge_clients import handshake
from testkit.ws_edge.edge import SECRET, RunningEdge, error_of, refusal_of, until
from ws_edge.auth.admission import check_origin
from ws_edge.errors import OriginRefusedError


async def refused(edge: RunningEdge, **options: Any) -> tuple[int, str, str | None]:
    """Status, code and Retry-After of a handshake that must fail."""
    response = await refusal_of(edge.socket(**options))
    return response.status_code, error_of(response), response.headers.get("Retry-After")


async def watch(socket: ClientConnection, order_id: str) -> dict[str, Any]:
    await socket.send(json.dumps({"type": "order_updates_request", "order_id": order_id}))
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def test_a_consumer_has_a_limit_of_sockets_and_others_have_their_own() -> None:
    async with RunningEdge(consumer_sockets=1) as edge:
        async with edge.socket(), edge.socket(consumer="customer-0002"):
            status, code, retry_after = await refused(edge)
        await until(lambda: len(edge.parts.sockets) == 0)
        async with edge.socket():
            pass

    assert (status, code) == (429, "too_many_sockets")
    assert retry_after is not None
    assert 1 <= int(retry_after) <= 5


async def test_an_address_has_a_limit_of_sockets() -> None:
    here, there = ({"X-Forwarded-For": f"203.0.113.9, {address}"} for address in ("198.51.100.1", "198.51.100.2"))
    async with RunningEdge(address_sockets=1) as edge, edge.socket(headers=here):
        status, code, _ = await refused(edge, consumer="customer-0002", headers=here)
        async with edge.socket(consumer="customer-0002", headers=there):
            pass

    assert (status, code) == (429, "too_many_sockets")


async def test_a_consumer_has_a_limit_of_rows_over_all_of_its_sockets() -> None:
    async with (
        RunningEdge(consumer_rows=2, default_interval_ms=1000) as edge,
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
    assert (error["error"]["code"], error["error"]["order_id"]) == ("too_many_watches", "3")
    assert "this consumer watches 2 rows of 2 here" in error["error"]["message"]
    assert again["data"]["order_id"] == "2"
    assert later["data"]["order_id"] == "3"


async def test_a_range_counts_as_many_rows_as_it_may_have() -> None:
    """Else the ranges of one consumer, each with rows of its own, could fill the memory."""
    groups = {"store": "orders-by-customer", "group": "customer-0001", "limit": 60}
    async with (
        RunningEdge(consumer_rows=100, default_interval_ms=1000) as edge,
        edge.socket("/v1/stream") as socket,
    ):
        watches = [{"id": number, "sort_from": str(number), **groups} for number in (1, 2)]
        await socket.send(json.dumps({"watch": watches}))
        ended = json.loads(await socket.recv())
        while "ended" not in ended:
            ended = json.loads(await socket.recv())

    assert (ended["id"], ended["ended"]["code"]) == (2, "too_many_watches")
    assert "watches 60 rows of 100 here, and this would count 60" in ended["ended"]["message"]


async def test_sockets_above_the_pace_are_refused_with_retry_after() -> None:
    async with RunningEdge(sockets_per_s=0.001) as edge, edge.socket():
        status, code, retry_after = await refused(edge)

    assert (status, code) == (503, "busy")
    assert retry_after is not None


@pytest.mark.parametrize("whose", ["consumer", "address"])
async def test_who_opens_and_drops_sockets_takes_no_turn_of_others(whose: str) -> None:
    limits: dict[str, Any] = {f"{whose}_sockets_per_s": 0.1}
    async with RunningEdge(**limits) as edge:
        for _ in "12":
            async with edge.socket():
                pass
        status, code, retry_after = await refused(edge)
        async with edge.socket(consumer="customer-0002", headers={"X-Forwarded-For": "198.51.100.2"}):
            pass

    assert (status, code) == (429, "too_many_sockets")
    assert retry_after is not None


async def test_a_browser_on_another_site_is_refused(edge: RunningEdge) -> None:
    status, code, _ = await refused(edge, headers={"Origin": "https://evil.example"})
    async with edge.socket(headers={"Origin": f"http://{edge.address}"}):
        pass

    assert (status, code) == (403, "origin_refused")


async def test_configured_origins_may_open_sockets() -> None:
    async with RunningEdge(origins="https://app.example.org, https://other.example.org") as edge:
        async with edge.socket(headers={"Origin": "https://other.example.org"}):
            pass
        status, code, _ = await refused(edge, headers={"Origin": f"http://{edge.address}"})

    assert (status, code) == (403, "origin_refused")


SITE = "origin: https://app.example.org"
API = "host: api.example.org"
NO_HOSTS = ("null", "", "https://", "https://[", "app.example.org")


@pytest.mark.parametrize(
    ("configured", "headers", "is_allowed"),
    [
        ("", ["host: ws-edge-1:8080"], True),
        ("https://app.example.org", [], True),
        ("", [SITE, "host: app.example.org:8443"], True),
        ("", [SITE, "host: ws-edge-1:8080", "x-forwarded-host: app.example.org"], True),
        ("", [SITE, "x-forwarded-host: APP.example.org"], True),
        ("", [SITE], False),
        ("", [SITE, API], False),
        ("", [SITE, "host: app.example.org", "x-forwarded-host: api.example.org"], False),
        ("", [SITE, "x-forwarded-host: app.example.org", "x-forwarded-host: api.example.org"], False),
        *(("", [f"origin: {each}", "host: "], False) for each in NO_HOSTS),
        ("https://app.example.org", ["origin: https://APP.example.org", API], True),
        ("https://app.example.org", ["origin: http://app.example.org", API], False),
        ("https://app.example.org", ["origin: https://app.example.org:8443", API], False),
        ("https://app.example.org", ["origin: https://api.example.org", API], False),
        ("https://app.example.org", ["origin: null", API], False),
        ("https://app.example.org", [SITE, "origin: https://evil.example"], False),
        ("*", ["origin: null"], True),
    ],
)
def test_a_site_is_allowed_by_the_host_that_it_asks_for_or_by_the_settings(
    configured: str, headers: list[str], is_allowed: bool
) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in (each.split(": ", 1) for each in headers)]
    with nullcontext() if is_allowed else pytest.raises(OriginRefusedError, match="WS_EDGE_ORIGINS"):
        check_origin([configured] if configured else [], {"headers": pairs})


async def test_a_burst_of_handshakes_is_opened_at_the_pace_and_none_is_refused() -> None:
    async with RunningEdge(sockets_per_s=20) as edge, AsyncExitStack() as opened:
        await asyncio.gather(*(opened.enter_async_context(edge.socket()) for _ in range(12)))

        assert len(edge.parts.sockets) == 12


async def test_a_client_that_leaves_the_line_leaves_nothing_behind() -> None:
    async with RunningEdge(sockets_per_s=2) as edge, edge.socket():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), edge.socket():
                pass
        await until(lambda: edge.metric("sockets_refused_total", reason="left") == 1)
        async with edge.socket():
            pass
        await until(lambda: edge.parts.sockets.admission.quotas.sockets == 1)


async def test_a_handshake_that_is_read_after_its_client_has_gone_opens_no_socket() -> None:
    async with RunningEdge() as edge:
        host, port = edge.address.split(":")
        with create_connection((host, int(port))) as client:  # the edge's loop does not run within the block
            client.sendall(handshake("edge", SECRET, 1))
        async with edge.socket():
            await until(lambda: len(edge.parts.server.server_state.connections) == 1)

        assert edge.metric("sockets_opened_total") == 1


async def test_a_handshake_in_line_is_refused_when_the_edge_is_stopped() -> None:
    async with RunningEdge(sockets_per_s=2) as edge, edge.socket():
        waiting = asyncio.create_task(refused(edge))
        await until(lambda: edge.parts.sockets.admission.quotas.sockets == 2)
        await edge.parts.sockets.drain(0, 0)

        assert (await waiting)[:2] == (503, "busy")
