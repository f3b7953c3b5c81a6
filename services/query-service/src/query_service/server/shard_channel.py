"""Connections to the internal service of an instance."""

from typing import Any

import grpc

from statecast.shard.v1.shard_service_pb2 import ListPartitionsRequest
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast_client.router import RECONNECTING
from statecast_service.tls import Tls

_NAME_S = 1.0
_NO_PROXY = ("grpc.enable_http_proxy", 0)
_OPTIONS = (
    *RECONNECTING,
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    _NO_PROXY,
)


def shard_channel(address: str, tls: Tls | None, *options: tuple[str, int]) -> grpc.aio.Channel:
    """Connects at once; `options` are gRPC's, beside those of every such connection."""
    channel: grpc.aio.Channel = _opened(grpc.aio, address, tls, (*_OPTIONS, *options))
    return channel


def _opened(kind: Any, address: str, tls: Tls | None, options: tuple[tuple[str, int], ...]) -> Any:
    """A channel of `grpc` or `grpc.aio`, in plain text without `tls`."""
    if tls is None:
        return kind.insecure_channel(address, options=options)
    return kind.secure_channel(address, tls.channel_credentials(), options=options)


def instance_at(address: str, tls: Tls | None) -> str | None:
    """The name of the instance that answers there, None if none does. Blocks for at most a second."""
    with _opened(grpc, address, tls, (_NO_PROXY,)) as channel:
        stub: Any = ShardServiceStub(channel)
        try:
            return str(stub.ListPartitions(ListPartitionsRequest(), timeout=_NAME_S).instance)
        except grpc.RpcError:
            return None
