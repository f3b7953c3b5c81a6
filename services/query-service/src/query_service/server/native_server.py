"""The gRPC server of pygrpc-native: HTTP/2 runs in threads of its own, outside Python, which gets calls as bytes.

A grpcio server beside it does the rest. It forwards to that one, over a Unix socket, all calls that it has no method
for: health checks, reflection, and calls of methods that nobody knows.
"""

import asyncio
from collections.abc import Sequence
from threading import Thread
from uuid import uuid4

from pygrpc_native import NativeGrpcFront
from typing_extensions import override

from query_service.server.grpcio_server import GrpcioServer, GrpcServer, check_free
from query_service.server.limits import InFlight
from query_service.server.methods import Method
from query_service.server.native_calls import NativeCalls

_MAX_EVENTS = 64  # that one turn of the event loop takes on
_KEEPALIVE_MS = 30_000  # a connection that was silent for so long is asked whether anyone is there,
_KEEPALIVE_TIMEOUT_MS = 20_000  # and closed when there is no answer within this
_SPARE_STREAMS = 1024  # calls of one connection beyond the limit of calls: they are refused, and do not wait


class NativeServer(GrpcServer):
    """Serves methods without TLS, and has another server for all other calls."""

    kind = "native"

    def __init__(self, methods: Sequence[Method], rest: GrpcioServer, in_flight: InFlight) -> None:
        """Makes the server; nothing listens yet. It has the limits of `rest`, which serves all that is no method."""
        self._methods = methods
        self._rest = rest
        self._in_flight = in_flight
        self._front: NativeGrpcFront | None = None
        self._calls: NativeCalls | None = None

    @override
    def bind(self, host: str, port: int) -> None:
        check_free(host, port)
        self._front = NativeGrpcFront(
            f"{host}:{port}",
            [(method.path, False) for method in self._methods],
            io_threads=1,
            call_details=True,
            metrics=True,
            keepalive_time_ms=_KEEPALIVE_MS,
            keepalive_timeout_ms=_KEEPALIVE_TIMEOUT_MS,
            max_concurrent_streams=self._rest.max_calls + _SPARE_STREAMS,
        )

    @override
    async def start(self) -> None:
        if self._front is None:
            raise RuntimeError("a port must be bound first")
        name = f"query-service-{uuid4().hex}"
        self._rest.bind_address(f"unix-abstract:{name}")
        await self._rest.start()
        self._front.set_fallback(f"\0{name}")
        limits = self._rest.max_calls, self._rest.max_request_bytes
        self._calls = NativeCalls(self._front, self._methods, *limits, self._in_flight)
        self._front.start()
        arguments = self._front, asyncio.get_running_loop(), self._calls
        Thread(target=_receive, args=arguments, name="native-grpc", daemon=True).start()

    @property
    @override
    def has_ended(self) -> bool:
        return self._rest.has_ended

    @override
    async def stop(self, grace_s: float) -> None:
        resting = asyncio.create_task(self._rest.stop(grace_s))
        if self._calls is not None:
            await self._calls.finish(grace_s)
        await resting
        if self._front is not None:
            await asyncio.to_thread(self._front.close)
        if self._calls is not None:
            self._calls.close()


def _receive(front: NativeGrpcFront, loop: asyncio.AbstractEventLoop, calls: NativeCalls) -> None:
    """Hands the calls to the event loop, many at a time, until the server or the loop is closed."""
    while (events := front.recv_batch_details(_MAX_EVENTS)) is not None:
        try:
            loop.call_soon_threadsafe(calls.take, events)
        except RuntimeError:  # the loop is closed
            return
