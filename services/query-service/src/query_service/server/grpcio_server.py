"""What a gRPC server does, and the server of grpcio: it can do everything that is asked of a port, TLS included."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import grpc
from grpc._cython.cygrpc import ExecuteBatchError
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from typing_extensions import override

from query_service.errors import LookupFailedError
from query_service.reads.status import ending_of
from query_service.server.limits import MIN_CALL_BYTES, Context
from query_service.server.methods import Method
from statecast_service.tls import Tls

_grpc_log = logging.getLogger("grpc._cython.cygrpc")


Handler = Callable[[bytes, Context], Awaitable[bytes]]


class GrpcServer(Protocol):
    """One port, from `bind` to `stop`."""

    kind: str
    """How the log and the setting GRPC_SERVER name it."""

    def bind(self, host: str, port: int) -> None:
        """Takes the port; nothing is answered yet. Raises OSError when it cannot be had."""

    async def start(self) -> None:
        """Answers from now on, on the running event loop."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended without `stop`, and will answer nobody any more."""

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and gives the port back."""


class _Crash(logging.Handler):
    """Whether the main loop of a `grpc.aio` server has failed.

    The server logs the error itself. All else that tells of it waits until the last call has ended, and the connection
    of that call may stay open for ever.
    """

    seen = False

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.seen = self.seen or isinstance(record.msg, Exception)


def _is_ours(record: logging.LogRecord) -> bool:
    """Drops tracebacks for which no one here can do anything, and of which a client could fill the log.

    They tell that a client was gone before it had its answer, and that a header is no UTF-8, which is then read as
    Latin-1. An error that ends the main loop is the message itself.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_clients = isinstance(error, (ExecuteBatchError, UnicodeDecodeError))
    return isinstance(record.msg, Exception) or not is_clients


def handler_of(method: Method) -> Handler:
    """Returns the method as this server calls it: request and response are held until the call is over."""

    async def handler(request: bytes, call: Context) -> bytes:
        try:
            answer = method.answer(request, call.time_remaining())
            response = answer if isinstance(answer, bytes) else await answer
            method.in_flight.hold(call, len(request) + MIN_CALL_BYTES + len(response))
        except LookupFailedError as failure:
            await call.abort(*ending_of(failure))
        return response

    return handler


class GrpcioServer(GrpcServer):
    """Serves all that was added to it before `start`.

    A path that is not UTF-8 ends it: the main loop of `grpc.aio` lets the error through.

    A stop may cut the last large response of a connection, which is then UNAVAILABLE: gRPC's core closes the connection
    as soon as it has handed the response to the system, and when window updates of the client still wait there unread,
    TCP resets it. Seen with 3 of 100 responses of 1 MB, and none of 50 KB, on a machine that was busy.
    """

    kind = "grpcio"

    def __init__(self, max_calls: int, max_request_bytes: int, tls: Tls | None) -> None:
        """Makes the server; nothing listens yet. Needs a running event loop. -1 byte is no limit of requests."""
        self.max_calls = max_calls
        self.max_request_bytes = max_request_bytes
        self._tls = tls
        self._server = grpc.aio.server(
            options=(
                ("grpc.so_reuseport", 0),  # else a second instance on the same port would get half of the calls
                ("grpc.max_receive_message_length", max_request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ),
            maximum_concurrent_rpcs=max_calls,
        )
        self._serving: asyncio.Task[bool] | None = None
        self._crash = _Crash()

    def add_methods(self, methods: Sequence[Method]) -> None:
        """Serves the methods, which are of one service."""
        self.add_handlers(methods[0].service, {method.name: handler_of(method) for method in methods})

    def add_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Serves methods of a service by their names."""
        unary: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(handler) for name, handler in handlers.items()
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, unary),))

    def add_health(self, servicer: health.aio.HealthServicer) -> None:
        """Answers health checks."""
        health_pb2_grpc.add_HealthServicer_to_server(servicer, self._server)

    def add_reflection(self, service: str) -> None:
        """Describes the service, and those of health and reflection, to tools such as grpcurl."""
        names = (service, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    @override
    def bind(self, host: str, port: int) -> None:
        check_free(host, port)
        self.bind_address(f"{host}:{port}")

    def bind_address(self, address: str) -> int:
        """Takes an address as gRPC writes it, such as `unix-abstract:name`; returns its port. Raises OSError."""
        try:
            if self._tls:
                return self._server.add_secure_port(address, self._tls.server_credentials())
            return self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise OSError(str(error)) from error

    @override
    async def start(self) -> None:
        _grpc_log.addHandler(self._crash)
        _grpc_log.addFilter(_is_ours)
        await self._server.start()
        self._serving = asyncio.create_task(self._server.wait_for_termination())

    @property
    @override
    def has_ended(self) -> bool:
        return self._crash.seen or (self._serving is not None and self._serving.done())

    @override
    async def stop(self, grace_s: float) -> None:
        await self._server.stop(grace_s)
        _grpc_log.removeHandler(self._crash)
        if self._serving is not None:
            with suppress(UnicodeDecodeError):  # the error that has ended it
                await self._serving


def check_free(host: str, port: int) -> None:
    """Raises OSError when the port is in use: a library that finds out by itself writes lines of its own about it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
