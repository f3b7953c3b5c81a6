"""The gRPC server of grpcio: it can do everything that is asked of a port, TLS included."""

import asyncio
import socket
from collections.abc import Callable, Sequence

import grpc
import structlog
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from query_service.serving.grpc_server import GrpcServer, Method
from statecast_service.tls import Tls

_RETRY_S = 0.05

_log = structlog.get_logger()


class GrpcioServer(GrpcServer):
    """Serves what was added to it before it was bound.

    A call whose path is not UTF-8 ends a `grpc.aio.Server` for good, with an error of its own: another one takes its
    place at once. The connections of the first break, and what was called there is UNAVAILABLE.
    """

    kind = "grpcio"

    def __init__(self, max_calls: int, max_request_bytes: int, tls: Tls | None) -> None:
        """Makes the server; nothing listens yet. Needs a running event loop. -1 byte is no limit of requests."""
        self.max_calls = max_calls
        self.max_request_bytes = max_request_bytes
        self._tls = tls
        self._services: list[Callable[[grpc.aio.Server], None]] = []
        self._address = ""
        self._server: grpc.aio.Server | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._stopping = False

    def add_methods(self, methods: Sequence[Method]) -> None:
        """Serves the methods, which are of one service."""
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            method.name: grpc.unary_unary_rpc_method_handler(method.handler) for method in methods
        }
        handler = grpc.method_handlers_generic_handler(methods[0].service, handlers)
        self._services.append(lambda server: server.add_generic_rpc_handlers((handler,)))

    def add_health(self, servicer: health.aio.HealthServicer) -> None:
        """Answers health checks."""
        self._services.append(lambda server: health_pb2_grpc.add_HealthServicer_to_server(servicer, server))

    def add_reflection(self, service: str) -> None:
        """Describes the service, and those of health and reflection, to tools such as grpcurl."""
        names = (service, health.SERVICE_NAME, reflection.SERVICE_NAME)
        self._services.append(lambda server: reflection.enable_server_reflection(names, server))

    def bind(self, host: str, port: int) -> None:
        family, kind, protocol, _, probed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:  # gRPC writes lines of its own about a port in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(probed)
        self.bind_address(f"{host}:{port}")

    def bind_address(self, address: str) -> None:
        """Takes an address as gRPC writes it, such as `unix-abstract:name`. Raises OSError."""
        self._address = address
        self._server = self._bound()

    async def start(self) -> None:
        if self._server is None:
            raise RuntimeError("a port must be bound first")
        await self._server.start()
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self, grace_s: float) -> None:
        self._stopping = True
        if self._server is not None:
            await self._server.stop(grace_s)
        if self._keeping is not None:
            await self._keeping

    async def _keep(self) -> None:
        """Starts another server whenever one ends by itself."""
        while self._server is not None and not self._stopping:
            try:
                await self._server.wait_for_termination()
            except UnicodeDecodeError as error:
                _log.warning("a call ended the gRPC server; starting another", address=self._address, reason=str(error))
                await self._replace()

    async def _replace(self) -> None:
        while not self._stopping:
            try:
                self._server = self._bound()
            except OSError:  # the server that has ended may still hold the port for a moment
                await asyncio.sleep(_RETRY_S)
            else:
                await self._server.start()
                return

    def _bound(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            options=(
                ("grpc.so_reuseport", 0),  # else a second instance on the same port would get half of the calls
                ("grpc.max_receive_message_length", self.max_request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ),
            maximum_concurrent_rpcs=self.max_calls,
        )
        for add in self._services:
            add(server)
        try:
            if self._tls:
                server.add_secure_port(self._address, self._tls.server_credentials())
            else:
                server.add_insecure_port(self._address)
        except RuntimeError as error:
            raise OSError(str(error)) from error
        return server
