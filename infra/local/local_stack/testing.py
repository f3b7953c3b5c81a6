"""For the tests of this package: a real supervisor of two small programs, a small gateway, and waiting."""

import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from local_stack import child_process
from local_stack.certificates import Certificates
from local_stack.errors import LocalStackError
from local_stack.foreground import run_stack
from local_stack.probe import HttpProbe
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Stack
from local_stack.stack_text import WholeStackText
from local_stack.supervisor import StackText

DEADLINE_S = 60
SLEEPS = "import time; time.sleep(600)"
STARTS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"


def wait_until(reached: Callable[[], object], what: str) -> None:
    """Returns once `reached()` is true. Raises AssertionError with `what` after a minute, times TEST_PATIENCE."""
    patience_s = DEADLINE_S * float(os.environ.get("TEST_PATIENCE", "1"))
    deadline = time.monotonic() + patience_s
    while not reached():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s:g} s: {what}")
        time.sleep(0.02)


def small_stack(
    settings: Settings, directory: StackDirectory, client: httpx.AsyncClient
) -> tuple[Sequence[ProcessSpec], StackText]:
    """A web server, and a parent with a child; the parent counts as ready while the server is."""
    port = str(settings.edge_1_port)
    probe = HttpProbe(client, f"http://127.0.0.1:{port}/")
    server = (sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(directory.data))
    specs = [
        ProcessSpec("server", server, probe=probe, stops_last=True),
        ProcessSpec("parent", (sys.executable, "-c", STARTS_A_CHILD), probe=probe, after=("server",)),
    ]
    return specs, WholeStackText(settings, directory.tls / "ca.pem", {})


def start_small(_: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a supervisor of the small stack where `start_stack` would start one of the whole stack."""
    return child_process.start([sys.executable, "-m", "local_stack.testing"], log, environment)


class FakeGateway:
    """A TLS server on 127.0.0.1 that answers GETs from `pages` and sends `frames` after each request on a socket."""

    def __init__(self, directory: Path) -> None:
        self.certificates = Certificates(directory)
        self.pages: dict[str, object] = {}
        self.frames: dict[str, list[object]] = {}
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str | None] = []
        self.sockets: set[ServerConnection] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Stack]:
        """Serves for the length of the block, as the gateway of the stack that it gives."""
        self.certificates.ensure(datetime.now(UTC))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self.certificates.certificate, self.certificates.key)
        async with serve(self._talk, "127.0.0.1", 0, ssl=tls, process_request=self._answer) as server:
            port = server.sockets[0].getsockname()[1]
            settings = Settings(gateway_https_port=port, directory=self.certificates.directory)
            yield Stack.model_validate_json(WholeStackText(settings, self.certificates.authority, {})({}))

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        self.authorizations.append(request.headers.get("Authorization"))
        if "Upgrade" in request.headers:
            return None
        page = self.pages.get(request.path.partition("?")[0])
        return connection.respond(HTTPStatus.OK if page else HTTPStatus.NOT_FOUND, json.dumps(page))

    async def _talk(self, socket: ServerConnection) -> None:
        self.sockets.add(socket)
        async for text in socket:
            request = json.loads(text)
            self.requests.append(request)
            for frame in self.frames.get(request["order_id"], []):
                await socket.send(json.dumps(frame))
        self.sockets.discard(socket)


if __name__ == "__main__":
    try:
        run_stack(Settings(), small_stack)
    except LocalStackError as error:
        sys.exit(str(error))
