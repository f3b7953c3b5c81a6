"""The two gRPC servers of an instance: one for callers, one for its peers."""

from collections.abc import Sequence

import structlog
from grpc_health.v1 import health, health_pb2

from query_service.server.grpcio_server import GrpcioServer, GrpcServer
from query_service.server.limits import InFlight
from query_service.server.methods import QUERY, SHARD, Method
from query_service.server.native_server import NativeServer
from query_service.settings import Settings
from statecast_service.errors import PortInUseError, SettingsError
from statecast_service.tls import Tls, mutual_tls, server_tls

_log = structlog.get_logger()


def public_tls(settings: Settings) -> Tls | None:
    """Returns the TLS of the public port; None without it. Raises SettingsError."""
    return server_tls(settings, "tls_certificate", "tls_key", "tls_client_ca")


def shard_tls(settings: Settings) -> Tls | None:
    """Returns the TLS of the internal port and the connections to peers; None without it. Raises SettingsError."""
    return mutual_tls(settings, "shard_tls_certificate", "shard_tls_key", "shard_tls_ca")


class Servers:
    """Both listen from `start` to `stop`. The internal service is not reachable on the public port."""

    def __init__(
        self,
        settings: Settings,
        queries: Sequence[Method],
        shards: Sequence[Method],
        in_flight: InFlight,
    ) -> None:
        """Makes the servers; nothing listens yet. Needs a running event loop.

        Raises SettingsError for wrong files, and for a server of the setting's choice that has no TLS where it is set.
        """
        self._settings = settings
        self._in_flight = in_flight
        self._health = health.aio.HealthServicer()
        public = GrpcioServer(settings.max_concurrent_calls, settings.max_request_bytes, public_tls(settings))
        public.add_reflection(QUERY)
        internal = GrpcioServer(settings.max_concurrent_calls, -1, shard_tls(settings))
        self._servers = (
            (self._serving(public, queries, "tls_certificate"), "port"),
            (self._serving(internal, shards, "shard_tls_certificate"), "shard_port"),
        )

    async def start(self) -> None:
        """Listens on both ports, not yet serving. Raises PortInUseError."""
        await self.set_serving(serving=False)
        try:
            for server, setting in self._servers:
                self._bind(server, setting)
            for server, setting in self._servers:
                await server.start()
                _log.info("listening", port=getattr(self._settings, setting), grpc_server=server.kind)
        except PortInUseError:
            await self.stop(0)
            raise

    async def set_serving(self, *, serving: bool) -> None:
        """Answers health checks with SERVING or NOT_SERVING from now on; calls are answered either way."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", QUERY, SHARD):
            await self._health.set(service, status)

    @property
    def has_ended(self) -> bool:
        """Whether one of them has ended by itself, so that the instance must be started again."""
        return any(server.has_ended for server, _ in self._servers)

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and stops listening."""
        for server, _ in self._servers:
            await server.stop(grace_s)

    def _serving(self, server: GrpcioServer, methods: Sequence[Method], certificate: str) -> GrpcServer:
        """Returns the methods' server: `server`, or the native one with `server` beside it."""
        settings = self._settings
        server.add_health(self._health)
        has_tls = getattr(settings, certificate) is not None
        if settings.grpc_server == "native" and has_tls:
            native, variable = settings.variable("grpc_server"), settings.variable(certificate)
            raise SettingsError(f"{native}=native has no TLS, which {variable} asks for: unset one of them")
        if settings.grpc_server == "grpcio" or has_tls:
            server.add_methods(methods)
            return server
        return NativeServer(methods, server, self._in_flight)

    def _bind(self, server: GrpcServer, setting: str) -> None:
        settings, port = self._settings, getattr(self._settings, setting)
        try:
            server.bind(settings.host, port)
        except OSError as error:
            variables = settings.variable("host"), settings.variable(setting)
            raise PortInUseError(settings.host, port, error, *variables) from error
