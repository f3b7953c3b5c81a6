"""A running gateway as its checks see it: where it answers, what stands behind it, and how to knock. For tests only."""

import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
from websockets.sync.client import ClientConnection, connect

from kong_envoy.binary import envoy_command
from kong_envoy.rendering import to_yaml
from kong_envoy.testing import EchoUpstream

PATIENCE_S = 30 * float(os.environ.get("TEST_PATIENCE", "1"))


@dataclass(frozen=True)
class GatewayUnderTest:
    """Where a gateway answers, and the two upstreams behind it."""

    http: str
    https: str
    tls: ssl.SSLContext
    secret: str
    upstreams: tuple[EchoUpstream, EchoUpstream]

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """GET over plain HTTP, without changing the path."""
        return httpx.get(self.http + path, headers=headers, timeout=PATIENCE_S)

    def socket(self, path: str, headers: Mapping[str, str] | None = None, *, secure: bool = False) -> ClientConnection:
        """An open socket; raises websockets' InvalidStatus when the handshake is refused."""
        url = (self.https if secure else self.http).replace("http", "ws", 1) + path
        context = self.tls if secure else None
        return connect(url, additional_headers=headers, ssl=context, open_timeout=PATIENCE_S, proxy=None)


def eventually(condition: Callable[[], object], what: str) -> None:
    """Polls until the condition holds; fails after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never came true: {what}")
        time.sleep(0.05)


def token(
    user: str, *, expires_in: int = 600, secret: str | None = None, algorithm: str = "HS256", **claims: Any
) -> str:
    """A token of a demo user; a claim given as None is left out."""
    payload = {"iss": f"{user}-demo-issuer", "exp": int(time.time()) + expires_in, **claims}
    kept = {name: value for name, value in payload.items() if value is not None}
    return jwt.encode(kept, secret or f"{user}-demo-secret-of-32-characters", algorithm=algorithm)


@contextmanager
def running_upstreams(addresses: Sequence[str]) -> Iterator[tuple[EchoUpstream, EchoUpstream]]:
    """Two upstreams that listen while the context lasts."""
    first, second = (EchoUpstream(f"upstream-{number}", address) for number, address in enumerate(addresses, 1))
    try:
        first.start()
        second.start()
        yield first, second
    finally:
        first.stop()
        second.stop()


@contextmanager
def running_envoy(config: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    """Envoy while the context lasts; yields its log. The configuration must have an admin address."""
    file, log = directory / "envoy.yaml", directory / "envoy.log"
    file.write_text(to_yaml(config))
    admin = config["admin"]["address"]["socket_address"]
    with log.open("wb") as output:
        process = subprocess.Popen(envoy_command(file), stdout=output, stderr=subprocess.STDOUT)  # noqa: S603  our own command
    try:
        eventually(
            lambda: process.poll() is not None or _is_live(f"http://127.0.0.1:{admin['port_value']}/ready"), "ready"
        )
        if process.poll() is not None:
            raise AssertionError(log.read_text())
        yield log
    finally:
        process.terminate()
        process.wait()


def _is_live(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False
