"""The two gRPC servers of an instance: one for callers, one for its peers."""

import socket

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from query_service.serving.call_bytes import handler_of
from query_service.settings import Settings
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast_service.errors import PortInUseError
from statecast_service.tls import Tls, mutual_tls, server_tls

QUERY = query.DESCRIPTOR.services_by_name["QueryService"].full_name
SHARD = shard.DESCRIPTOR.services_by_name["ShardService"].full_name


def public_tls(settings: Settings) -> Tls | None:
    """Returns what the public port needs; None without TLS. Raises SettingsError."""
    return server_tls(settings, "tls_certificate", "tls_key", "tls_client_ca")


def shard_tls(settings: Settings) -> Tls | None:
    """Returns what the internal port and the connections to peers need; None without TLS. Raises SettingsError."""
    return mutual_tls(settings, "shard_tls_certificate", "shard_tls_key", "shard_tls_ca")


class Servers:
    """Both listen from `start` to `stop`. The internal service is not reachable on the public port."""

    def __init__(
        self, settings: Settings, queries: query_grpc.QueryServiceServicer, shards: shard_grpc.ShardServiceServicer
    ) -> None:
        """Makes the servers; nothing listens yet. Needs a running event loop. Raises SettingsError for wrong files."""
        self._settings = settings
        tls = public_tls(settings), shard_tls(settings)
        self._health = health.aio.HealthServicer()
        public, internal = _server(settings, settings.max_request_bytes), _server(settings, -1)
        _add(public, query.DESCRIPTOR.services_by_name["QueryService"], queries)
        _add(internal, shard.DESCRIPTOR.services_by_name["ShardService"], shards)
        for server in (public, internal):
            health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection((QUERY, health.SERVICE_NAME, reflection.SERVICE_NAME), public)
        self._servers = ((public, "port", tls[0]), (internal, "shard_port", tls[1]))

    async def start(self) -> None:
        """Listens on both ports, not yet serving. Raises PortInUseError."""
        await self.set_serving(serving=False)
        try:
            for server, setting, tls in self._servers:
                _bind(server, self._settings, setting, tls)
            for server, _, _ in self._servers:
                await server.start()
        except PortInUseError:
            await self.stop(0)
            raise

    async def set_serving(self, *, serving: bool) -> None:
        """Answers health checks with SERVING or NOT_SERVING from now on; calls are answered either way."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", QUERY, SHARD):
            await self._health.set(service, status)

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and stops listening."""
        for server, _, _ in self._servers:
            await server.stop(grace_s)


def _server(settings: Settings, max_request_bytes: int) -> grpc.aio.Server:
    return grpc.aio.server(
        options=(
            ("grpc.so_reuseport", 0),  # else a second instance on the same port would get half of the calls
            ("grpc.max_receive_message_length", max_request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ),
        maximum_concurrent_rpcs=settings.max_concurrent_calls,
    )


def _add(server: grpc.aio.Server, service: ServiceDescriptor, servicer: object) -> None:
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        method.name: grpc.unary_unary_rpc_method_handler(handler_of(servicer, method)) for method in service.methods
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))


def _bind(server: grpc.aio.Server, settings: Settings, setting: str, tls: Tls | None) -> None:
    host, port = settings.host, getattr(settings, setting)
    address = f"{host}:{port}"
    try:
        family, kind, protocol, _, probed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:  # gRPC writes lines of its own about a port in use
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(probed)
        server.add_secure_port(address, tls.server_credentials()) if tls else server.add_insecure_port(address)
    except (OSError, RuntimeError) as error:
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise PortInUseError(host, port, cause, settings.variable("host"), settings.variable(setting)) from error
