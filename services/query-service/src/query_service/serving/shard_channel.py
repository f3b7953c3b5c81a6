"""Connections to the internal service of an instance."""

import grpc

from statecast_client.router import RECONNECTING
from statecast_service.tls import Tls

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
