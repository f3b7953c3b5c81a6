"""Serves /metrics, /healthz and /readyz over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from cdc_simulator.errors import PortInUseError
from cdc_simulator.readiness import Readiness
from cdc_simulator.settings import variable

TEXT = "text/plain; charset=utf-8"


@contextmanager
def health_server(host: str, port: int, registry: CollectorRegistry, readiness: Readiness) -> Iterator[None]:
    """Serves while the block runs, in threads of its own. Raises PortInUseError."""
    try:
        server = ThreadingHTTPServer((host, port), _handler(registry, readiness))
    except OSError as error:
        raise PortInUseError(
            f"cannot listen on {host}:{port} for metrics: {error.strerror}; "
            f"set {variable('metrics_host')} and {variable('metrics_port')} to an address that is free"
        ) from error
    thread = Thread(target=server.serve_forever, args=(0.1,), name="health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(registry: CollectorRegistry, readiness: Readiness) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers one connection."""

        timeout = 5  # seconds that a silent client may hold a thread

        def do_GET(self) -> None:
            """Answers the three paths."""
            if self.path == "/metrics":
                self._answer(HTTPStatus.OK, generate_latest(registry), CONTENT_TYPE_LATEST)
            elif self.path == "/healthz":
                self._answer(HTTPStatus.OK, b"alive\n")
            elif self.path == "/readyz":
                reason = readiness.reason
                status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
                self._answer(status, f"{reason or 'ready'}\n".encode())
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"only /metrics, /healthz and /readyz are here\n")

        def log_message(self, *_: Any) -> None:
            """Keeps probes out of the log."""

        def _answer(self, status: HTTPStatus, body: bytes, content_type: str = TEXT) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
