"""The port is bound before anything else, and a signal drains the sockets before the server ends."""

import pytest

from statecast_service.errors import PortInUseError
from testkit.ws_edge.edge import SECRET, RunningEdge, until
from ws_edge.server import listen
from ws_edge.settings import Settings


def settings(port: int) -> Settings:
    return Settings.model_validate({"port": port, "gateway_secret": SECRET})


def test_a_port_that_is_taken_is_refused_with_its_setting() -> None:
    with listen(settings(0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"127.0.0.1:{port} .*WS_EDGE_PORT"):
            listen(settings(port))


async def test_a_signal_closes_the_sockets_and_ends_the_server() -> None:
    async with RunningEdge(drain_window_ms=20) as edge:
        socket = await edge.socket()
        edge.parts.server.handle_exit(15, None)
        await socket.wait_closed()
        await until(lambda: edge.parts.server.should_exit)

        assert socket.close_code == 1012


async def test_a_second_signal_ends_the_drain() -> None:
    async with RunningEdge(drain_notice_ms=3_600_000) as edge:
        sockets = [await edge.socket() for _ in range(2)]
        edge.parts.server.handle_exit(15, None)
        await until(lambda: edge.parts.sockets.draining)
        edge.parts.server.handle_exit(15, None)

        assert edge.parts.server.should_exit
        assert edge.parts.server.force_exit
    for socket in sockets:
        await socket.wait_closed()
