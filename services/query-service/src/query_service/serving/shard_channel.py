"""Connections to the internal service of an instance."""

import grpc

from statecast_service.tls import Tls

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # How long an attempt to connect may take at least: with TLS it is four times there and back.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A restarted instance may have another address behind its name; by default gRPC looks again after 30 s only.
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
)


def shard_channel(address: str, tls: Tls | None, *options: tuple[str, int]) -> grpc.aio.Channel:
    """Connects at once, in plain text without `tls`; `options` are gRPC's, beside those of every such connection."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options=(*_OPTIONS, *options))
    return grpc.aio.secure_channel(address, tls.channel_credentials(), options=(*_OPTIONS, *options))
