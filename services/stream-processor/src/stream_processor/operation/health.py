"""Serves /metrics, /healthz and /readyz over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from stream_processor.errors import SettingsError
from stream_processor.metrics import Metrics


class Readiness:
    """Why the service is not ready; None when it is. One thread writes, others read."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.reason: str | None = "starting"

    def is_not(self, reason: str) -> None:
        """Answers /readyz with 503 and this reason from now on."""
        self.reason = reason
        self._metrics.ready.set(0)

    def is_ready(self) -> None:
        """Answers /readyz with 200 from now on."""
        self.reason = None
        self._metrics.ready.set(1)


@contextmanager
def serve(host: str, port: int, metrics: Metrics, readiness: Readiness) -> Iterator[int]:
    """Serves in a thread of its own and gives the port. Raises SettingsError when it cannot listen there."""
    try:
        server = ThreadingHTTPServer((host, port), _handler(metrics, readiness))
    except OSError as error:
        raise SettingsError(
            f"STREAM_PROCESSOR_METRICS_PORT: cannot listen on {host}:{port}: {error.strerror}; choose another"
        ) from error
    Thread(target=server.serve_forever, name="health", daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _handler(metrics: Metrics, readiness: Readiness) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(HTTPStatus.OK, generate_latest(metrics.registry), CONTENT_TYPE_LATEST)
            elif self.path == "/healthz":
                self._answer(HTTPStatus.OK, b"alive\n")
            elif self.path == "/readyz":
                reason = readiness.reason
                status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(status, f"{reason or 'ready'}\n".encode())
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"there is /metrics, /healthz and /readyz\n")

        def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Says nothing: probes come every second."""

    return Handler
