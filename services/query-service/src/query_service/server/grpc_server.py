"""The interface of a gRPC server, whichever one it is."""

import socket
from typing import Protocol


class GrpcServer(Protocol):
    """One port, from `bind` to `stop`."""

    kind: str
    """How the log and the setting GRPC_SERVER name it."""

    def bind(self, host: str, port: int) -> None:
        """Takes the port; nothing is answered yet. Raises OSError when it cannot be had."""

    async def start(self) -> None:
        """Answers from now on, on the running event loop."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended without `stop`, and will answer nobody any more."""

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and gives the port back."""


def check_free(host: str, port: int) -> None:
    """Raises OSError when the port is in use: a library that finds out by itself writes lines of its own about it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
