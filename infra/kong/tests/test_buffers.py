"""The gateway's buffer for a client that reads nothing is bounded, so that the edge behind it notices."""

import fcntl
import selectors
import socket
import struct
import termios
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from kong_envoy import rendering
from kong_envoy.rendering import BUFFER_BYTES, render
from testkit.gateway_under_test import TARGET, running_envoy
from testkit.ports import free_ports
from testkit.waiting import wait_until

STANDS_STILL_S = 1.0
CLIENT_HOLDS = 4096
READS_EVERY_S = 0.1
"""How long a slow client is at its work between two reads."""
SOME = 8
"""So many frames fit into the buffers of gateway and kernels."""
SOCKETS = {"orders", "stores", "tickets"}
"""The routes that sockets take."""
MAX_ON_THE_WAY = 8 * BUFFER_BYTES
FRAME = Frame(Opcode.BINARY, bytes(16_000)).serialize(mask=False)
HANDSHAKE = f"""GET /v1/stream HTTP/1.1
Host: gateway
Upgrade: websocket
Connection: Upgrade
Sec-WebSocket-Version: 13
Sec-WebSocket-Key: {"A" * 22}==
apikey: alice-demo-key

""".replace("\n", "\r\n").encode()


class SendingUpstream:
    """Opens one socket and hands it to `send`; `taken` is then its result."""

    def __init__(self, port: int, send: Callable[[socket.socket], int]) -> None:
        self._send = send
        self._listener = socket.create_server(("127.0.0.1", port))
        self.taken: int | None = None
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Listens no more."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        protocol = ServerProtocol()
        protocol.receive_data(connection.recv(65_536))
        [request] = protocol.events_received()
        assert isinstance(request, Request)
        if request.path == "/readyz":
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return
        protocol.send_response(protocol.accept(request))
        connection.sendall(b"".join(protocol.data_to_send()))
        with suppress(ConnectionError):
            self.taken = self._send(connection)
            connection.recv(1)


def flood(connection: socket.socket) -> int:
    """Sends until nothing moves any more, and returns the bytes that have left this end."""
    connection.setblocking(False)
    sent, rest = 0, FRAME
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_WRITE)
        while selector.select(STANDS_STILL_S):
            count = connection.send(rest)
            sent, rest = sent + count, rest[count:] or FRAME
    connection.setblocking(True)
    (waiting,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
    return sent - int(waiting)


def say_goodbye(connection: socket.socket) -> int:
    """Sends some frames and a close frame at once, and sends no more."""
    close = Frame(Opcode.CLOSE, Close(4403, "").serialize()).serialize(mask=False)
    connection.sendall(FRAME * SOME + close)
    connection.shutdown(socket.SHUT_WR)
    return SOME * len(FRAME)


@contextmanager
def slow_client(
    document: dict[str, Any],
    environment: dict[str, str],
    directory: Path,
    send: Callable[[socket.socket], int],
) -> Iterator[tuple[SendingUpstream, socket.socket, str]]:
    """Connects a client with a small receive buffer to an upstream behind the gateway; yields its admin, too."""
    ports = free_ports(4)
    upstream, spare, listen, admin = (f"127.0.0.1:{port}" for port in ports)
    resolve = {TARGET: (upstream, spare)}
    config = render(document, environment=environment, resolve=resolve, listen_http=listen, admin=admin)
    with (
        closing(SendingUpstream(ports[0], send)) as sending,
        running_envoy(config, directory),
        socket.socket() as client,
    ):
        wait_until(lambda: "health_flags::healthy" in httpx.get(f"http://{admin}/clusters").text, "a healthy upstream")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CLIENT_HOLDS)
        client.connect(("127.0.0.1", ports[2]))
        client.sendall(HANDSHAKE)
        yield sending, client, f"http://{admin}"


def test_a_client_that_reads_nothing_stops_the_upstream_soon(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    with slow_client(document, environment, tmp_path, flood) as (upstream, _, _):
        wait_until(lambda: upstream.taken is not None, "nothing moves any more")

        assert upstream.taken is not None
        assert len(FRAME) < upstream.taken < MAX_ON_THE_WAY


def test_a_slow_client_gets_the_last_frames_and_the_code_of_the_close(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    with slow_client(document, environment, tmp_path, say_goodbye) as (upstream, client, _):
        wait_until(lambda: upstream.taken is not None, "the upstream has said goodbye")
        arrived = bytearray()
        while part := client.recv(CLIENT_HOLDS):
            arrived += part
            Event().wait(READS_EVERY_S)

    assert arrived.count(FRAME) == SOME
    assert struct.unpack("!H", arrived[-2:]) == (4403,)


def test_a_client_that_reads_nothing_after_the_close_is_cut_off(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "STALLED_MS", 1000)
    with slow_client(document, environment, tmp_path, say_goodbye) as (upstream, _, admin):
        wait_until(lambda: upstream.taken is not None, "the upstream has said goodbye")

        def is_cut_off() -> bool:
            return "http.http.downstream_cx_active: 0" in httpx.get(f"{admin}/stats?filter=cx_active").text

        wait_until(is_cut_off, "the client is cut off")


def test_every_listener_and_every_cluster_is_bounded(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = render(document, environment=environment, listen_http="127.0.0.1:18000", listen_https="127.0.0.1:18443")
    listeners, clusters = (config["static_resources"][name] for name in ("listeners", "clusters"))
    options = [each["socket_options"] for each in (*listeners, *(each["upstream_bind_config"] for each in clusters))]

    assert len(listeners) == 2
    assert {each["per_connection_buffer_limit_bytes"] for each in (*listeners, *clusters)} == {BUFFER_BYTES}
    assert {option["int_value"] for [option, *_] in options} == {BUFFER_BYTES}


def test_nothing_but_the_edge_ends_a_socket_within_the_hour(
    document: dict[str, Any], environment: dict[str, str]
) -> None:
    config = render(document, environment=environment, listen_http="127.0.0.1:18000")
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    sockets = [
        each["route"]
        for each in routes
        if each["metadata"]["filter_metadata"]["envoy.filters.http.lua"]["route"] in SOCKETS
    ]

    assert manager["stream_idle_timeout"] == "0s"
    assert {(each["timeout"], each["idle_timeout"]) for each in sockets} == {("0s", "3600s")}
