"""Serves /metrics, /healthz and /readyz over HTTP, from a thread of its own."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from query_service.errors import PortInUseError
from query_service.settings import variable

Reason = Callable[[], str | None]


class StatusPage:
    """Listens from `start` to `stop`."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry, sick: Reason, unready: Reason) -> None:
        """`sick` and `unready` return why /healthz and /readyz answer 503; None for 200."""
        self._address = (host, port)
        self._pages = {
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(registry)),
            "/healthz": lambda: _verdict(sick()),
            "/readyz": lambda: _verdict(unready()),
        }
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listens. Raises PortInUseError."""
        host, port = self._address
        try:
            server = self._server = ThreadingHTTPServer(self._address, _handler(self._pages))
        except OSError as error:
            raise PortInUseError(
                f"{variable('metrics_port')}={port}: {host}:{port} cannot be listened on: {error.strerror}"
            ) from error
        Thread(target=server.serve_forever, name="status-page", daemon=True).start()

    def stop(self) -> None:
        """Stops listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


_Page = tuple[int, str, bytes]


def _verdict(reason: str | None) -> _Page:
    return (200, "text/plain", b"ok\n") if reason is None else (503, "text/plain", f"{reason}\n".encode())


def _handler(pages: dict[str, Callable[[], _Page]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET of the known paths."""

        def do_GET(self) -> None:
            """Answers one request."""
            page = pages.get(self.path.partition("?")[0])
            status, kind, body = page() if page else (404, "text/plain", b"/metrics, /healthz or /readyz\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is inherited
            """Says nothing: probes come every second."""

    return Handler
