"""A phone: it reaches the system through the gateway alone, with the credentials of one consumer."""

import base64
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
from websockets.sync.client import connect

from drivers.unread_connection import UnreadConnection
from drivers.waiting import scaled

Frame = dict[str, Any]


def watch_request(order_id: str, interval_ms: int, position: Frame | None = None) -> Frame:
    """The frame that asks for the updates of an order, or only for those newer than a position."""
    request: Frame = {"type": "order_updates_request", "order_id": order_id, "interval_ms": interval_ms}
    return request | ({"position": position} if position else {})


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
    """What a watch needs of a client's connection; websockets' own is one."""

    def send(self, message: str, /) -> None:
        """Sends a frame."""

    def recv(self, timeout: float | None = None) -> str | bytes:
        """The next frame; TimeoutError when none comes in time, ConnectionClosed at the end."""


@dataclass
class Watch:
    """One open socket and every frame that came over it."""

    connection: Connection
    frames: list[Frame] = field(default_factory=list)

    def send(self, frame: Frame | str) -> None:
        """Sends a frame; a str goes out as it is."""
        self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    def next(self, timeout_s: float = 20.0) -> Frame:
        """The next frame; TimeoutError when none comes."""
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


class Phone:
    """A client with HTTP Basic credentials."""

    def __init__(self, gateway: Gateway, username: str, password: str) -> None:
        self._gateway = gateway
        token = base64.b64encode(f"{username}:{password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}"}

    def get(self, path: str, **parameters: str | int) -> httpx.Response:
        """GETs a path through the gateway."""
        url = self._gateway.https + path
        return httpx.get(url, headers=self.headers, params=parameters, verify=self._gateway.tls(), timeout=scaled(10))

    @contextmanager
    def open(self, path: str = "/update/orders") -> Iterator[Watch]:
        """Opens a socket through the gateway; websockets.InvalidStatus when the handshake is refused."""
        with connect(
            self._gateway.wss + path,
            additional_headers=self.headers,
            ssl=self._gateway.tls(),
            open_timeout=scaled(10),
            compression=None,
        ) as connection:
            yield Watch(connection)

    @contextmanager
    def open_unread(self, path: str = "/update/orders") -> Iterator[Watch]:
        """As `open`, but nothing is read except by who asks for a frame: in between, the phone is stalled."""
        url = self._gateway.wss + path
        with closing(UnreadConnection(url, self.headers, self._gateway.tls(), scaled(10))) as connection:
            yield Watch(connection)

    @contextmanager
    def watch(self, order_id: str, position: Frame | None = None, interval_ms: int = 100) -> Iterator[Watch]:
        """Opens a socket and asks for the updates of one order."""
        with self.open() as watch:
            watch.send(watch_request(order_id, interval_ms, position))
            yield watch
