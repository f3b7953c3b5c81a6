"""Bounds what the calls in work hold in memory: an overload is refused before memory grows."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc

from query_service.errors import OverloadedError
from query_service.metrics import Metrics

_LEAST_BYTES = 1024  # what a call costs beside its messages


class Sized(Protocol):
    """A message."""

    def ByteSize(self) -> int:  # noqa: N802  protobuf names it
        """Returns how many bytes it has on the wire."""


class InFlight:
    """The bytes of the requests in work, and of the answers that callers have not taken yet."""

    def __init__(self, most_bytes: int, metrics: Metrics) -> None:
        """Holds at most `most_bytes`, over all calls of the instance."""
        self._most_bytes = most_bytes
        self._bytes = 0
        self._gauge = metrics.in_flight_bytes

    def hold(self, call: "grpc.aio.ServicerContext[Any, Any]", size: int) -> None:
        """Holds so many bytes until the call is over. Raises OverloadedError when they are too many."""
        if self._bytes + size > self._most_bytes:
            raise OverloadedError(
                "the instance is overloaded: its calls hold as much memory as they may: ask again later"
            )
        self._add(size)
        call.add_done_callback(lambda _: self._add(-size))  # type: ignore[arg-type]  # the stub asks for a class

    def _add(self, size: int) -> None:
        self._bytes += size
        self._gauge.set(self._bytes)


class Bounded(Protocol):
    """A servicer whose calls are bounded."""

    in_flight: InFlight


_Servicer = TypeVar("_Servicer", bound=Bounded)
_Request = TypeVar("_Request", bound=Sized)
_Answer = TypeVar("_Answer", bound=Sized)
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Method = Callable[[_Servicer, _Request, _Context], Awaitable[_Answer]]


def within_memory(method: _Method[_Servicer, _Request, _Answer]) -> _Method[_Servicer, _Request, _Answer]:
    """Makes a method of a servicer hold the bytes of its request while it works, and of its answer until it is sent."""

    @wraps(method)
    async def answer(servicer: _Servicer, request: _Request, context: _Context) -> _Answer:
        servicer.in_flight.hold(context, request.ByteSize() + _LEAST_BYTES)
        given = await method(servicer, request, context)
        servicer.in_flight.hold(context, given.ByteSize())
        return given

    return answer
