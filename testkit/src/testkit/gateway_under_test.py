"""A running gateway as its checks see it: its addresses, its upstreams, and calls to it. For tests only."""

import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
from websockets.sync.client import ClientConnection, connect

from kong_envoy.rendering import envoy_command, render, to_yaml
from testkit.kong_envoy import EchoUpstream
from testkit.waiting import scaled, wait_until

TARGET = "ws-edge:8080"
"""The name of all edges in the gateway's file."""
TIMEOUT_S = scaled(30)


@dataclass(frozen=True)
class GatewayUnderTest:
    """Where a gateway answers, and the two upstreams behind it."""

    http: str
    https: str
    tls: ssl.SSLContext
    secret: str
    upstreams: tuple[EchoUpstream, EchoUpstream]

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Makes a GET over plain HTTP, without changing the path."""
        return httpx.get(self.http + path, headers=headers, timeout=TIMEOUT_S)

    def socket(self, path: str, headers: Mapping[str, str] | None = None, *, secure: bool = False) -> ClientConnection:
        """Returns an open socket; raises websockets' InvalidStatus when the handshake is refused."""
        url = (self.https if secure else self.http).replace("http", "ws", 1) + path
        context = self.tls if secure else None
        return connect(url, additional_headers=headers, ssl=context, open_timeout=TIMEOUT_S, proxy=None)


def token(
    user: str, *, expires_in: int = 600, secret: str | None = None, algorithm: str = "HS256", **claims: Any
) -> str:
    """Returns a token of a demo user; a claim given as None is left out."""
    payload = {"iss": f"{user}-demo-issuer", "exp": int(time.time()) + expires_in, **claims}
    kept = {name: value for name, value in payload.items() if value is not None}
    return jwt.encode(kept, secret or f"{user}-demo-secret-of-32-characters", algorithm=algorithm)


@contextmanager
def running_upstreams(addresses: Sequence[str]) -> Iterator[tuple[EchoUpstream, EchoUpstream]]:
    """Runs two upstreams while the context lasts."""
    first, second = (EchoUpstream(f"upstream-{number}", address) for number, address in enumerate(addresses, 1))
    try:
        first.start()
        second.start()
        yield first, second
    finally:
        first.stop()
        second.stop()


@contextmanager
def running_gateway(
    document: Mapping[str, Any],
    environment: Mapping[str, str],
    directory: Path,
    ports: Sequence[int],
    authority: Path | None = None,
    more_script: str = "",
) -> Iterator[tuple[GatewayUnderTest, Path]]:
    """Renders the document for Envoy, with two upstreams, on five free ports; yields the gateway and Envoy's log.

    `authority` is the certificate to trust; without it there is no TLS. `more_script` is added to the script.
    """
    addresses = [f"127.0.0.1:{port}" for port in ports]
    config = render(
        document,
        environment=environment,
        resolve={TARGET: addresses[:2]},
        listen_http=addresses[2],
        admin=addresses[3],
        listen_https=addresses[4] if authority else None,
    )
    for script in _scripts_in(config):
        script["inline_string"] += more_script
    tls = ssl.create_default_context(cafile=authority)
    https = f"https://localhost:{ports[4]}"
    with running_upstreams(addresses[:2]) as upstreams, running_envoy(config, directory) as log:
        secret = environment["GATEWAY_SECRET"]
        yield GatewayUnderTest(f"http://{addresses[2]}", https, tls, secret, upstreams), log


@contextmanager
def running_envoy(config: Mapping[str, Any], directory: Path) -> Iterator[Path]:
    """Runs Envoy while the context lasts; yields its log. The configuration must have an admin address."""
    file, log = directory / "envoy.yaml", directory / "envoy.log"
    file.write_text(to_yaml(config))
    admin = config["admin"]["address"]["socket_address"]
    with log.open("wb") as output:
        process = subprocess.Popen(envoy_command(file), stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until(
            lambda: process.poll() is not None or _is_live(f"http://127.0.0.1:{admin['port_value']}/ready"),
            "envoy is ready",
        )
        if process.poll() is not None:
            raise AssertionError(log.read_text())
        yield log
    finally:
        process.terminate()
        process.wait()


def _scripts_in(config: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for listener in config["static_resources"]["listeners"]:
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        for each in manager["http_filters"]:
            if "default_source_code" in each["typed_config"]:
                yield each["typed_config"]["default_source_code"]


def _is_live(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False
