"""The two gRPC servers of an instance: one for everybody, one for its peers."""

import socket

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from query_service.errors import PortInUseError
from query_service.settings import Settings, variable
from query_service.tls import Tls
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc

QUERY = query.DESCRIPTOR.services_by_name["QueryService"].full_name
SHARD = shard.DESCRIPTOR.services_by_name["ShardService"].full_name

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Servers:
    """Both listen from `start` to `stop`. The internal service is not reachable on the public port."""

    def __init__(
        self,
        settings: Settings,
        queries: query_grpc.QueryServiceServicer,
        shards: shard_grpc.ShardServiceServicer,
        public_tls: Tls | None,
        shard_tls: Tls | None,
    ) -> None:
        """Makes the servers; nothing listens yet. Needs a running event loop."""
        self._settings = settings
        self._tls = (public_tls, shard_tls)
        self._health = health.aio.HealthServicer()
        self._public = _server(settings, settings.max_request_bytes)
        self._internal = _server(settings, -1)
        query_grpc.add_QueryServiceServicer_to_server(queries, self._public)
        shard_grpc.add_ShardServiceServicer_to_server(shards, self._internal)
        for server in (self._public, self._internal):
            health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection((QUERY, health.SERVICE_NAME, reflection.SERVICE_NAME), self._public)

    async def start(self) -> None:
        """Listens on both ports, not yet serving. Raises PortInUseError."""
        await self.set_serving(serving=False)
        try:
            servers = (self._public, self._internal)
            for server, tls, name in zip(servers, self._tls, ("port", "shard_port"), strict=True):
                _bind(server, self._settings.host, getattr(self._settings, name), name, tls)
                await server.start()
        except PortInUseError:
            await self.stop(0)
            raise

    async def set_serving(self, *, serving: bool) -> None:
        """Answers health checks with SERVING or NOT_SERVING from now on; calls are answered either way."""
        for service in ("", QUERY, SHARD):
            await self._health.set(service, _SERVING if serving else _NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and stops listening."""
        await self._public.stop(grace_s)
        await self._internal.stop(grace_s)


def _server(settings: Settings, most_request_bytes: int) -> grpc.aio.Server:
    return grpc.aio.server(
        options=(
            ("grpc.so_reuseport", 0),  # else a second instance on the same port would get half of the calls
            ("grpc.max_receive_message_length", most_request_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ),
        maximum_concurrent_rpcs=settings.max_concurrent_calls,
    )


def _bind(server: grpc.aio.Server, host: str, port: int, setting: str, tls: Tls | None) -> None:
    try:
        _probe(host, port)  # first, because gRPC writes lines of its own about a port that it cannot have
        address = f"{host}:{port}"
        server.add_secure_port(address, tls.as_server()) if tls else server.add_insecure_port(address)
    except (OSError, RuntimeError) as error:
        raise PortInUseError(f"{variable(setting)}={port}: {host}:{port} cannot be listened on: {error}") from error


def _probe(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
