"""Bounds what Envoy and the kernel hold for a client that does not read, so that the edge soon notices it.

What a stalled socket's client will never see must wait at the edge, which keeps the newest value of a key only.
"""

import socket
from typing import Any

HELD = 64 * 1024
"""Bytes that each buffer on the way to a client holds, as a target. The kernel counts its own overhead beside them."""


def towards_clients() -> dict[str, Any]:
    """The fields of a listener. The sockets that it accepts inherit its options."""
    return {
        "per_connection_buffer_limit_bytes": HELD,
        "socket_options": [_kernel_buffer("SO_SNDBUF", socket.SO_SNDBUF)],
    }


def from_upstreams() -> dict[str, Any]:
    """The fields of a cluster."""
    return {
        "per_connection_buffer_limit_bytes": HELD,
        "upstream_bind_config": {"socket_options": [_kernel_buffer("SO_RCVBUF", socket.SO_RCVBUF)]},
    }


def _kernel_buffer(name: str, option: int) -> dict[str, Any]:
    """Left alone, the kernel lets a buffer grow to megabytes. Before the handshake, as windows are scaled by then."""
    return {
        "description": name,
        "level": socket.SOL_SOCKET,
        "name": option,
        "int_value": HELD,
        "state": "STATE_PREBIND",
    }
