"""Clients that reach the system through the gateway alone, with the credentials of one consumer."""

import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import jwt
from websockets import frames
from websockets.client import ClientProtocol
from websockets.protocol import State
from websockets.sync.client import connect
from websockets.uri import parse_uri

from local_stack.running_stack import RunningStack
from statecast_client.tokens import position_in
from testkit.waiting import scaled

KERNEL_HOLDS = 8192
"""The kernel's receive buffer, in bytes. It is set before connecting, because TCP windows are agreed upon then."""

AT_ONCE = 65_536
EPOCH_CHARACTERS = 10
Frame = dict[str, Any]


class UnreadConnection:
    """Like websockets' own client, but without a thread that reads; pings are answered while a caller reads."""

    def __init__(self, url: str, headers: Mapping[str, str], tls: ssl.SSLContext, timeout: float) -> None:
        """Connects and opens the socket. Raises websockets' InvalidStatus when the handshake is refused."""
        self._protocol = ClientProtocol(parse_uri(url), max_size=None)
        self._texts: deque[str] = deque()
        address = urlsplit(url)
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_HOLDS)
        plain.settimeout(timeout)
        plain.connect((address.hostname, address.port))
        self._socket = tls.wrap_socket(plain, server_hostname=address.hostname)
        request = self._protocol.connect()
        request.headers.update(headers)
        self._protocol.send_request(request)
        self._flush()
        while self._protocol.state is State.CONNECTING:
            self._take()

    def send(self, text: str) -> None:
        """Sends a frame of text."""
        self._protocol.send_text(text.encode())
        self._flush()

    def recv(self, timeout: float | None = None) -> str:
        """Returns the next frame; TimeoutError when none comes for `timeout` seconds, ConnectionClosed at the end."""
        self._socket.settimeout(timeout)
        while not self._texts:
            self._take()
        return self._texts.popleft()

    def close(self) -> None:
        """Closes the connection without a closing handshake."""
        self._socket.close()

    def _take(self) -> None:
        try:
            data = self._socket.recv(AT_ONCE)
        except ConnectionError:
            data = b""
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        for event in self._protocol.events_received():
            if isinstance(event, frames.Frame) and event.opcode is frames.Opcode.TEXT:
                self._texts.append(bytes(event.data).decode())
        if self._protocol.handshake_exc is not None:
            raise self._protocol.handshake_exc
        if not data:
            raise self._protocol.close_exc
        self._flush()

    def _flush(self) -> None:
        try:
            self._socket.sendall(b"".join(self._protocol.data_to_send()))
        except ConnectionError:
            return  # the unread frames have the reason


def watch_request(order_id: str, interval_ms: int, token: str = "") -> Frame:
    """Returns the frame that asks for the updates of an order, or only for those after a token."""
    request: Frame = {"type": "order_updates_request", "order_id": order_id, "interval_ms": interval_ms}
    return request | ({"token": token} if token else {})


def offset_of(frame: Frame) -> int:
    """Returns the offset of an order's newest record, as the token of a frame or of an answer by REST has it."""
    offset, _ = position_in(frame["token"])
    return offset


def epoch_of(frame: Frame) -> str:
    """Returns the part of the token of an order that stands for the epoch: the same in all frames of the order."""
    token: str = frame["token"]
    return token[:EPOCH_CHARACTERS]


@dataclass(frozen=True)
class Gateway:
    """Where the gateway listens and the certificate authority that vouches for it."""

    https: str
    wss: str
    ca_certificate: str

    def tls(self) -> ssl.SSLContext:
        """Trusts the gateway's certificate authority and no other."""
        return ssl.create_default_context(cafile=self.ca_certificate)


class Connection(Protocol):
    """The part of a client's connection that a watch needs. The connection of `websockets` fits."""

    def send(self, message: str, /) -> None:
        """Sends a frame."""

    def recv(self, timeout: float | None = None) -> str | bytes:
        """Returns the next frame; TimeoutError when none comes in time, ConnectionClosed at the end."""


@dataclass
class OrderSocket:
    """One open socket and every frame that came over it."""

    connection: Connection
    frames: list[Frame] = field(default_factory=list)

    def send(self, frame: Frame | str) -> None:
        """Sends a frame; a str goes out as it is."""
        self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    def next(self, timeout_s: float = 20.0) -> Frame:
        """Returns the next frame; TimeoutError when none comes."""
        frame: Frame = json.loads(self.connection.recv(timeout=scaled(timeout_s)))
        self.frames.append(frame)
        return frame

    def until_status(self, order_id: str, status: str, timeout_s: float = 30.0) -> Frame:
        """Reads on until the order has the status and returns that frame."""
        deadline = time.monotonic() + scaled(timeout_s)
        while (left := deadline - time.monotonic()) > 0:
            frame = self.next(left / scaled(1))
            data = frame.get("data", {})
            if (data.get("order_id"), data.get("status")) == (order_id, status):
                return frame
        raise AssertionError(f"{order_id} never became {status}; frames: {self.frames}")


class GatewayClient:
    """A client with the headers of one credential."""

    def __init__(self, gateway: Gateway, headers: Mapping[str, str]) -> None:
        self._gateway = gateway
        self.headers = dict(headers)

    def get(self, path: str, **parameters: str | int) -> httpx.Response:
        """GETs a path through the gateway."""
        return self._get(path, self.headers, parameters)

    def get_newer(self, path: str, etag: str) -> httpx.Response:
        """GETs a path through the gateway with the ETag of a copy."""
        return self._get(path, self.headers | {"If-None-Match": etag}, {})

    def _get(self, path: str, headers: dict[str, str], parameters: dict[str, str | int]) -> httpx.Response:
        url = self._gateway.https + path
        return httpx.get(url, headers=headers, params=parameters, verify=self._gateway.tls(), timeout=scaled(10))

    def rows(self, store: str, group: str | None = None, **parameters: str | int) -> httpx.Response:
        """GETs a page of the rows of a group, or of all groups."""
        of_group = {} if group is None else {"group": group}
        return self.get(f"/v1/stores/{store}/rows", **of_group, **parameters)

    def post_from(self, origin: str, path: str) -> httpx.Response:
        """POSTs as a browser does for a page of a site."""
        headers = self.headers | {"Origin": origin}
        return httpx.post(self._gateway.https + path, headers=headers, verify=self._gateway.tls(), timeout=scaled(10))

    def preflight(self, origin: str, path: str) -> httpx.Response:
        """Sends a browser's preflight for a POST by a page of `origin`: it has no credential, and names the headers."""
        names = ",".join(sorted(name.lower() for name in self.headers))
        asks = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
        url = self._gateway.https + path
        return httpx.options(url, headers=asks, verify=self._gateway.tls(), timeout=scaled(10))

    @contextmanager
    def open(self, path: str = "/update/orders") -> Iterator[OrderSocket]:
        """Opens a socket through the gateway; websockets.InvalidStatus when the handshake is refused."""
        with connect(
            self._gateway.wss + path,
            additional_headers=self.headers,
            ssl=self._gateway.tls(),
            open_timeout=scaled(10),
            compression=None,
        ) as connection:
            yield OrderSocket(connection)

    @contextmanager
    def open_unread(self, path: str = "/update/orders") -> Iterator[OrderSocket]:
        """Opens a socket that is read only while a caller waits for a frame; otherwise the phone is stalled."""
        url = self._gateway.wss + path
        with closing(UnreadConnection(url, self.headers, self._gateway.tls(), scaled(10))) as connection:
            yield OrderSocket(connection)

    @contextmanager
    def watch(self, order_id: str, token: str = "", interval_ms: int = 100) -> Iterator[OrderSocket]:
        """Opens a socket and asks for the updates of one order, or only for those after a token."""
        with self.open() as watch:
            watch.send(watch_request(order_id, interval_ms, token))
            yield watch


def gateway_of(stack: RunningStack) -> Gateway:
    """Returns the gateway of a stack, as its clients see it."""
    gateway = stack.file.gateway
    return Gateway(https=gateway.https, wss=gateway.wss, ca_certificate=str(gateway.ca_certificate))


def client_of(stack: RunningStack, user: str) -> GatewayClient:
    """Returns the phone of one of the gateway's demo users."""
    headers = stack.file.credentials[user].headers
    assert headers, f"{user} has no key"
    return GatewayClient(gateway_of(stack), headers)


class TokenClient(GatewayClient):
    """The phone of a demo user with a token that is good for `seconds`, stretched as all waiting is."""

    def __init__(self, stack: RunningStack, user: str, seconds: float) -> None:
        credentials = stack.file.credentials[user].jwt
        assert credentials is not None, f"{user} has no secret for tokens"
        claims = {"iss": credentials.key, "iat": int(time.time()), "exp": int(time.time() + scaled(seconds))}
        self.token = jwt.encode(claims, credentials.secret, algorithm=credentials.algorithm)
        super().__init__(gateway_of(stack), {"Authorization": f"Bearer {self.token}"})

    def ticket(self) -> Frame:
        """Returns the edge's answer to a request for a ticket with this token."""
        url = f"{self._gateway.https}/v1/tickets"
        answer = httpx.post(url, headers=self.headers, verify=self._gateway.tls(), timeout=scaled(10))
        assert answer.status_code == 200, answer.text
        ticket: Frame = answer.json()
        return ticket
