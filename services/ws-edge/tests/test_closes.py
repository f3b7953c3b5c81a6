"""Every end of a socket is counted under the reason that operators can act on."""

from contextlib import suppress

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from testkit.ws_edge.edge import RunningEdge, refusal_of, until
from ws_edge.errors import REASONS, reason_of


def closed(edge: RunningEdge) -> dict[str, int]:
    """Returns the number of closed sockets, by reason; reasons without any are left out."""
    counts = {reason: int(edge.metric("sockets_closed_total", reason=reason)) for reason in REASONS}
    return {reason: count for reason, count in counts.items() if count}


async def break_off(socket: ClientConnection) -> None:
    """Ends the connection without a close frame, as a phone does that leaves its network."""
    socket.transport.abort()


async def test_closed_sockets_are_counted_by_who_closed_them_and_how(edge: RunningEdge) -> None:
    for code in (1000, 1001, 1011, 4401):
        async with edge.socket() as socket:
            await socket.close(code)
    async with edge.socket() as socket:
        await break_off(socket)
    async with edge.socket() as socket:
        await socket.send("x" * 70_000)
        with suppress(ConnectionClosed):
            await socket.recv()
    await until(lambda: len(edge.parts.sockets) == 0)

    assert closed(edge) == {"client": 4, "lost": 1, "too_large": 1}


async def test_a_client_that_breaks_the_protocol_is_counted_as_protocol(edge: RunningEdge) -> None:
    async with edge.socket() as socket:
        socket.transport.write(b"\xff\xff")
        await socket.wait_closed()
    await until(lambda: len(edge.parts.sockets) == 0)

    assert closed(edge) == {"protocol": 1}


async def test_text_that_is_not_utf_8_is_counted_as_protocol_and_logged_as_no_defect(
    edge: RunningEdge, caplog: pytest.LogCaptureFixture
) -> None:
    async with edge.socket() as socket:
        for _ in "12":
            socket.protocol.send_text(b"\xff")
        socket.send_data()
        await socket.wait_closed()
    await until(lambda: len(edge.parts.sockets) == 0)

    assert socket.close_code == 1007
    assert closed(edge) == {"protocol": 1}
    assert caplog.records == []


async def test_a_client_that_answers_no_ping_is_counted_apart_from_a_lost_connection() -> None:
    async with RunningEdge(ping_interval_s=0.05, ping_timeout_s=0.05) as edge, edge.socket() as socket:
        socket.transport.pause_reading()
        await until(lambda: bool(closed(edge)))
        counted = closed(edge)
        await break_off(socket)

    assert counted == {"no_pong": 1}


async def test_sockets_closed_by_the_edge_are_counted_by_their_reason() -> None:
    async with RunningEdge() as edge:
        async with edge.socket(expires_at=edge.wall_clock.now + 0.05) as expiring:
            edge.wall_clock.now += 1
            await expiring.wait_closed()
        async with edge.socket() as last:
            await until(lambda: len(edge.parts.sockets) == 1)
            await edge.parts.sockets.drain(0, 0)
            await last.wait_closed()
        await until(lambda: len(edge.parts.sockets) == 0)
        counted = closed(edge)

    assert counted == {"expired": 1, "restart": 1}


async def test_refused_handshakes_are_counted_by_their_cause() -> None:
    async with RunningEdge(max_sockets=1, consumer_sockets=1) as full, RunningEdge(sockets_per_s=0.001) as paced:
        async with full.socket():
            for consumer in ("customer-0001", "customer-0002"):
                await refusal_of(full.socket(consumer=consumer))
        async with paced.socket():
            await refusal_of(paced.socket())
        await full.parts.sockets.drain(0, 0)
        await refusal_of(full.socket())

    refused = [full.metric("sockets_refused_total", reason=each) for each in ("too_many_sockets", "full", "draining")]
    assert refused == [1, 1, 1]
    assert paced.metric("sockets_refused_total", reason="pace") == 1


@pytest.mark.parametrize(
    ("stalled", "end_code", "code", "reason"),
    [
        (True, 4403, 1006, "stalled"),
        (False, 4403, 1006, "revoked"),
        (False, 1007, 1007, "protocol"),
        (False, None, 1006, "lost"),
        (False, None, 4408, "client"),
    ],
)
def test_a_reset_precedes_the_code_of_the_edge_and_that_the_code_of_the_client(
    stalled: bool, end_code: int | None, code: int, reason: str
) -> None:
    assert reason_of(stalled, end_code, code) == reason
