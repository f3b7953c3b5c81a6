"""Whether a process is ready."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from local_stack.broker import Broker
from local_stack.ports import free_ports
from local_stack.probe import BrokerProbe, HttpProbe


class Handler(BaseHTTPRequestHandler):
    """Is ready for those who bring the right header."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("X-Key") == "right" else 503)
        self.end_headers()
        self.wfile.write(b"two partitions to go")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/readyz"
        server.shutdown()
        thread.join()


async def test_nothing_is_missing_when_the_answer_is_200(url: str) -> None:
    async with httpx.AsyncClient() as client:
        missing = await HttpProbe(client, url, {"X-Key": "right"}).missing()

    assert missing == ""


async def test_the_answer_says_what_is_missing(url: str) -> None:
    async with httpx.AsyncClient() as client:
        missing = await HttpProbe(client, url).missing()

    assert missing == f"{url}: 503 two partitions to go"


async def test_nobody_listening_is_said() -> None:
    (port,) = free_ports(1)
    async with httpx.AsyncClient() as client:
        missing = await HttpProbe(client, f"http://127.0.0.1:{port}/").missing()

    assert missing == f"http://127.0.0.1:{port}/: ConnectError"


@pytest.mark.kafka
async def test_a_broker_is_ready_when_it_serves_metadata(kafka: str, tmp_path: Path) -> None:
    port, unused = int(kafka.partition(":")[2]), free_ports(1)[0]

    assert await BrokerProbe(Broker(tmp_path, port, 0)).missing() == ""
    assert "no broker answers" in await BrokerProbe(Broker(tmp_path, unused, 0)).missing()
