"""The port is bound before anything else, and a signal drains the sockets before the server ends."""

from testkit.ws_edge.edge import RunningEdge, until


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
