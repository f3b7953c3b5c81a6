"""Serves /metrics, /healthz and /readyz over HTTP, from threads of its own; adds the build to the metrics."""

import socket
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple, Protocol, Self

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Info, generate_latest
from typing_extensions import override

from statecast_service.build import Build
from statecast_service.errors import PortInUseError

Reason = Callable[[], str | None]
"""Why a probe fails; None while all is well."""

TEXT = "text/plain; charset=utf-8"
MAX_SILENCE_S = 5.0  # for which a client may hold a thread

log = structlog.get_logger()


class Answer(NamedTuple):
    """The response of one path."""

    status: int
    content_type: str
    body: bytes


def health_answer(reason: str | None, notes: Sequence[str] = ()) -> Answer:
    """Returns the answer of /healthz and /readyz: 200 and `ok`, or 503 and the reason; a line of each note follows."""
    status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, TEXT, "".join(f"{line}\n" for line in (reason or "ok", *notes)).encode())


def register_build(registry: CollectorRegistry, distribution: str) -> None:
    """Registers `<distribution>_build_info`: 1, with the labels version, commit and contract."""
    name = f"{distribution.replace('-', '_')}_build"
    info = Info(name, "1, labelled with version, commit and version of the contract.", registry=registry)
    facts = Build.of(distribution)._asdict()
    info.info({label: facts[label] for label in ("version", "commit", "contract")})


class MetricsSettings(Protocol):
    """The settings that name the address; port 0 takes a free one."""

    @property
    def metrics_host(self) -> str: ...
    @property
    def metrics_port(self) -> int: ...
    @classmethod
    def variable(cls, field: str, /) -> str: ...


class HealthServer:
    """Listens from `start` to `stop`, or within a `with` block."""

    def __init__(
        self,
        settings: MetricsSettings,
        registry: CollectorRegistry,
        *,
        readiness: Reason,
        liveness: Reason = lambda: None,
        notes: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        """Other threads call both probes and `notes`, which /readyz adds to its reason, at any time.

        A note is a line about a part that does not work, while the service does.
        """
        self._settings = settings
        self._paths: Mapping[str, Callable[[], Answer]] = {
            "/metrics": lambda: Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry)),
            "/healthz": lambda: health_answer(liveness()),
            "/readyz": lambda: health_answer(readiness(), notes()),
        }
        self._server: ThreadingHTTPServer | None = None
        self._thread: Thread | None = None

    @property
    def port(self) -> int:
        """The port that it listens on, also when the settings say 0. Raises RuntimeError before `start`."""
        if self._server is None:
            raise RuntimeError("the health server does not listen")
        return self._server.server_port

    def start(self) -> Self:
        """Listens. Raises PortInUseError."""
        host, port = self._settings.metrics_host, self._settings.metrics_port
        try:
            self._server = _Server(host, port, self._paths)
        except OSError as error:
            variable = self._settings.variable
            raise PortInUseError(host, port, error, variable("metrics_host"), variable("metrics_port")) from error
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), name="health", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops listening; does nothing when it does not listen."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    def __init__(self, host: str, port: int, paths: Mapping[str, Callable[[], Answer]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.paths = paths
        super().__init__((host, port), _Handler)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        log.warning("health_answer_failed", client=str(client_address), exc_info=True)  # noqa: LOG014  it is called in one


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    @override
    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(MAX_SILENCE_S)

    def do_GET(self) -> None:
        paths = self.server.paths
        not_found = Answer(HTTPStatus.NOT_FOUND, TEXT, f"there is {', '.join(paths)}\n".encode())
        status, content_type, body = paths.get(self.path.partition("?")[0], lambda: not_found)()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: probes come every second."""
