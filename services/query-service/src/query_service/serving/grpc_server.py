"""What an instance needs of a gRPC server, whichever one it is, and the methods that one serves."""

import socket
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from google.protobuf.descriptor import ServiceDescriptor

from query_service.serving.call_bytes import FastAnswer, Handler, fast_answer_of, handler_of, slow_handler_of


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


class Method(NamedTuple):
    """A unary method of a service, from the bytes of a request to those of its response."""

    service: str
    name: str
    handler: Handler
    """Answers every call, and needs nothing else."""
    fast_answer: FastAnswer | None
    slow_handler: Handler
    """For servers that call `fast_answer` themselves: what answers when there is none."""

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


def methods_of(service: ServiceDescriptor, servicer: object) -> Sequence[Method]:
    """Returns how the servicer answers the methods of its service."""
    return [
        Method(
            service.full_name,
            method.name,
            handler_of(servicer, method),
            fast_answer_of(servicer, method),
            slow_handler_of(servicer, method),
        )
        for method in service.methods
    ]
