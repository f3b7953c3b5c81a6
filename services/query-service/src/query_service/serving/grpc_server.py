"""What an instance needs of a gRPC server, whichever one it is, and the methods that one serves."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from query_service.serving.call_limits import Context, parsed


class GrpcServer(Protocol):
    """One port, from `bind` to `stop`."""

    kind: str
    """How the log and the setting GRPC_SERVER name it."""

    def bind(self, host: str, port: int) -> None:
        """Takes the port; nothing is answered yet. Raises OSError when it cannot be had."""

    async def start(self) -> None:
        """Answers from now on, on the running event loop."""

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls, lets those in work end for up to `grace_s`, and gives the port back."""


class Method(NamedTuple):
    """A unary method of a service; `respond` makes the bytes of a response from those of a request."""

    service: str
    name: str
    respond: Callable[[bytes, Context], Awaitable[bytes]]
    at_once: Callable[[bytes], bytes | None] | None
    """Responds without waiting, or returns None: then `respond` must. Not every method has it."""

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


def methods_of(service: ServiceDescriptor, servicer: object) -> Sequence[Method]:
    return [Method(service.full_name, method.name, _handler_of(servicer, method), None) for method in service.methods]


def _handler_of(servicer: object, method: MethodDescriptor) -> Callable[[bytes, Context], Awaitable[bytes]]:
    respond: Any = getattr(servicer, method.name)
    parse = partial(parsed, GetMessageClass(method.input_type))

    async def by_method(request: bytes, call: Context) -> bytes:
        response: bytes = (await respond(parse(request), call)).SerializeToString()
        return response

    return by_method
