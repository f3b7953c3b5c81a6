"""Which instances a reader may ask, as their health says: what a balancer in front of them knows."""

import asyncio
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub

SERVICE = "statecast.query.v1.QueryService"
AGAIN_S = 0.1
OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class QueryChannel:
    """A connection to one instance, watched for as long as it is open."""

    def __init__(self, name: str, address: str) -> None:
        """Connects; healthy once the instance says so."""
        self.name = name
        self.healthy = False
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._health: Any = HealthStub(self._channel)
        self.stub: Any = QueryServiceStub(self._channel)
        self._watching = asyncio.create_task(self._watch())

    def failed(self) -> None:
        """Notes that a call was not answered: unhealthy until the instance says otherwise anew."""
        if self.healthy:
            self.healthy = False
            self._watching.cancel()
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Closes the connection."""
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        await self._channel.close()

    async def _watch(self) -> None:
        while True:
            try:
                async for answer in self._health.Watch(HealthCheckRequest(service=SERVICE)):
                    self.healthy = answer.status == HealthCheckResponse.SERVING
            except grpc.aio.AioRpcError:
                self.healthy = False
            await asyncio.sleep(AGAIN_S)
