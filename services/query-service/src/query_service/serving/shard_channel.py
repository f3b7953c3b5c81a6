"""Connections to the internal service of an instance."""

from typing import Any

import grpc

from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast_client.router import RECONNECTING
from statecast_service.tls import Tls

_NAME_S = 1.0
_OPTIONS = (
    *RECONNECTING,
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
)


def shard_channel(address: str, tls: Tls | None, *options: tuple[str, int]) -> grpc.aio.Channel:
    """Connects at once, in plain text without `tls`; `options` are gRPC's, beside those of every such connection."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options=(*_OPTIONS, *options))
    return grpc.aio.secure_channel(address, tls.channel_credentials(), options=(*_OPTIONS, *options))


def instance_at(address: str, tls: Tls | None) -> str | None:
    """The name of the instance that answers there, None if none does. Blocks for at most a second."""
    options = [("grpc.enable_http_proxy", 0)]
    channel = (
        grpc.insecure_channel(address, options)
        if tls is None
        else grpc.secure_channel(address, tls.channel_credentials(), options)
    )
    with channel:
        stub: Any = ShardServiceStub(channel)
        try:
            return str(stub.ListPartitions(ListPartitionsRequest(), timeout=_NAME_S).instance)
        except grpc.RpcError:
            return None
