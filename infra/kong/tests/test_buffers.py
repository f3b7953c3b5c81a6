"""What the gateway holds for a client that reads nothing is bounded, so that the edge behind it notices."""

import fcntl
import selectors
import socket
import struct
import termios
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from kong_envoy.rendering import BUFFER_BYTES, render
from testkit.gateway_under_test import TARGET, running_envoy
from testkit.ports import free_ports
from testkit.waiting import wait_until

STANDS_STILL_S = 1.0
CLIENT_HOLDS = 4096
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


class FloodUpstream:
    """Opens one socket and sends on it while its peer reads; `taken` is then the number of bytes sent."""

    def __init__(self, port: int) -> None:
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
        self.taken = _flood(connection)
        with suppress(ConnectionError):
            connection.recv(1)


def _flood(connection: socket.socket) -> int:
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


def test_a_client_that_reads_nothing_stops_the_upstream_soon(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    ports = free_ports(4)
    upstream, spare, listen, admin = (f"127.0.0.1:{port}" for port in ports)
    config = render(
        document,
        environment=environment,
        resolve={TARGET: (upstream, spare)},
        listen_http=listen,
        admin=admin,
    )
    with closing(FloodUpstream(ports[0])) as flood, running_envoy(config, tmp_path), socket.socket() as client:
        wait_until(lambda: "health_flags::healthy" in httpx.get(f"http://{admin}/clusters").text, "a healthy upstream")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CLIENT_HOLDS)
        client.connect(("127.0.0.1", ports[2]))
        client.sendall(HANDSHAKE)
        wait_until(lambda: flood.taken is not None, "nothing moves any more")

        assert flood.taken is not None
        assert len(FRAME) < flood.taken < MAX_ON_THE_WAY


def test_every_listener_and_every_cluster_is_bounded(document: dict[str, Any], environment: dict[str, str]) -> None:
    config = render(document, environment=environment, listen_http="127.0.0.1:18000", listen_https="127.0.0.1:18443")
    listeners, clusters = (config["static_resources"][name] for name in ("listeners", "clusters"))
    options = [each["socket_options"] for each in (*listeners, *(each["upstream_bind_config"] for each in clusters))]

    assert len(listeners) == 2
    assert {each["per_connection_buffer_limit_bytes"] for each in (*listeners, *clusters)} == {BUFFER_BYTES}
    assert {option["int_value"] for [option] in options} == {BUFFER_BYTES}


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
